"""Configs in YAML and JSON files (JSON is parsed as YAML)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ember_ml.configs.base import Config
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.overrides import override

C = TypeVar("C", bound=Config)

MAX_BYTES = 1_000_000
MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_DIGITS = 300
"""Limits on files: size, nesting, values after aliases are replaced, and digits of a number."""


class _Loader(yaml.SafeLoader):
    """YAML loader for plain data: rejects duplicate keys and reads 1e-3 as a float.

    Deep nesting, aliases that multiply and numbers of many digits are errors.
    """

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"more than {MAX_DEPTH} levels of nesting",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_document(self) -> Any:
        node = super().compose_document()
        _check_size(node)
        return node

    def construct_yaml_int(self, node: Any) -> Any:
        if len(node.value) > MAX_DIGITS:
            raise yaml.MarkedYAMLError(
                problem=f"a number of more than {MAX_DIGITS} digits", problem_mark=node.start_mark
            )
        return super().construct_yaml_int(node)

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a key must be a string", problem_mark=key.start_mark
                )
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r:.60} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node


_Loader.add_implicit_resolver(  # YAML 1.1 requires a dot and a signed exponent in a float
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def _check_size(root: Any) -> None:
    """Raise a YAML error if aliases are recursive or stand for too many values."""
    sizes: dict[int, int | None] = {}

    def size(node: Any) -> int:
        known = sizes.get(id(node), 0)
        if known is None:
            raise _problem("an alias contains itself", node)
        if known:
            return known
        sizes[id(node)] = None
        parts = node.value if isinstance(node, yaml.CollectionNode) else []
        pairs = [each for part in parts for each in (part if isinstance(part, tuple) else [part])]
        total = 1 + sum(map(size, pairs))
        if total > MAX_NODES:
            raise _problem(f"more than {MAX_NODES:,} values, with aliases replaced", node)
        sizes[id(node)] = total
        return total

    size(root)


def _problem(text: str, node: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


def parse(text: str, where: str) -> Any:
    """Return the data in YAML text.

    Args:
        text: The YAML text.
        where: Name of the source, for error messages.

    Raises:
        ConfigError: The text is not valid YAML; the error names the line and column.
    """
    if len(text) > MAX_BYTES:
        raise ConfigError(where, [Problem((), f"is longer than {MAX_BYTES:,} characters")])
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(
            f"{where}{place}", [Problem((), f"not valid YAML: {error.problem}")]
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(where, [Problem((), f"not valid YAML: {error}")]) from None
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
        # PyYAML passes on errors of dates, numbers and tags
        raise ConfigError(where, [Problem((), f"not valid YAML: {error!s:.200}")]) from None


def load(path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Config:
    """Return the config in a YAML or JSON file.

    The key `extends: other.yaml` names a file in the folder of this one, or below, that provides
    the missing values.

    Args:
        path: The file.
        changes: Changes to apply, of the form "dotted.key=value".
    """
    return load_as(Config, path, changes)


def read(cls: type[C], source: str | os.PathLike[str]) -> C:
    """Return the config in YAML text or in a file."""
    if isinstance(source, str) and ("\n" in source or ": " in source or source.startswith("{")):
        return _from_data(cls, parse(source, cls.__name__), source, cls.__name__)
    return load_as(cls, source, ())


def load_data(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the data in a YAML or JSON file, merged over the file that it extends.

    Args:
        path: The file.
    """
    file = Path(path)
    return _data(file, _read(file), file.parent)


def load_as(cls: type[C], path: str | os.PathLike[str], changes: Iterable[str]) -> C:
    """Return the config of a class in a file, with changes applied."""
    file, changes = Path(path), list(changes)
    text = _read(file)
    data = _data(file, text, file.parent)
    if not changes:
        return _from_data(cls, data, text, str(path))
    try:
        complete = cls.from_dict(data).to_dict()  # with defaults
    except ConfigError:  # the changes may fix it
        complete = data
    return _from_data(cls, override(complete, changes), text, str(path))


def _read(path: Path) -> str:
    """Return the text of a file."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(str(path), [Problem((), "is not a regular file")])
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigError(str(path), [Problem((), f"is larger than {MAX_BYTES:,} bytes")])
        return content.decode()
    except OSError as error:
        raise ConfigError(str(path), [Problem((), f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), [Problem((), "is not UTF-8 text")]) from None
    except ConfigError:
        raise
    except ValueError as error:  # a path with a null character
        raise ConfigError(f"{path!s:.200}", [Problem((), f"cannot be read: {error}")]) from None


def _data(path: Path, text: str, folder: Path, parents: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the data of a file, merged over the file that it extends.

    Args:
        path: The file.
        text: Its content.
        folder: Folder that the extended files must be in.
        parents: Files that extend this one.
    """
    data = parse(text, str(path))
    if not isinstance(data, dict):
        raise ConfigError(str(path), [Problem((), f"must hold keys and values, not {data!r:.60}")])
    name = data.pop("extends", None)
    if name is None:
        return data
    base = _base(path, name, folder)
    seen = (*parents, path.resolve())
    if base.resolve() in seen:
        raise ConfigError(str(path), [Problem(("extends",), "the file extends itself")])
    return _merged(_data(base, _read(base), folder, seen), data)


def _base(path: Path, name: object, folder: Path) -> Path:
    """Return the file that another extends; it must be in the folder or below."""
    if not isinstance(name, str):
        raise ConfigError(
            str(path), [Problem(("extends",), f"must be the name of a file, not {name!r:.60}")]
        )
    base = path.parent / name
    try:
        inside = base.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            str(path), [Problem(("extends",), f"cannot be read: {error!s:.200}")]
        ) from None
    if not inside:
        raise ConfigError(
            str(path),
            [Problem(("extends",), f"must be a file in {folder} or below, not {name!r:.200}")],
        )
    return base


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings; `over` wins, and a component of another type replaces the base."""
    if "type" in over and over["type"] != base.get("type", over["type"]):
        return dict(over)
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _from_data(cls: type[C], data: Any, text: str, where: str) -> C:
    try:
        return cls.from_dict(data)
    except ConfigError as error:
        problems = [_located(problem, text) for problem in error.problems]
        raise ConfigError(where, problems) from None


def _located(problem: Problem, text: str) -> Problem:
    """Add the line number of the problem's path, if the path is in this text."""
    line = _line(text, problem.path)
    return problem if line is None else Problem(problem.path, f"{problem.message} (line {line})")


def _line(text: str, path: tuple[str | int, ...]) -> int | None:
    node = yaml.compose(text, _Loader)
    line = None
    for key in path:
        if isinstance(node, yaml.MappingNode):
            matches = [(name, value) for name, value in node.value if name.value == str(key)]
            if not matches:
                return line
            line, node = matches[0][0].start_mark.line + 1, matches[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            return line
    return line
