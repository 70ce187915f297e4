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


class _Loader(yaml.SafeLoader):
    """YAML loader for plain data: rejects duplicate keys and reads 1e-3 as a float."""

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
                    problem=f"the key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node


_Loader.add_implicit_resolver(  # YAML 1.1 requires a dot and a signed exponent in a float
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def parse(text: str, where: str) -> Any:
    """Return the data in YAML text.

    Args:
        text: The YAML text.
        where: Name of the source, for error messages.

    Raises:
        ConfigError: The text is not valid YAML; the error names the line and column.
    """
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


def load(path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Config:
    """Return the config in a YAML or JSON file.

    The key `extends: other.yaml` names a file, relative to this one, that provides the missing
    values.

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


def load_as(cls: type[C], path: str | os.PathLike[str], changes: Iterable[str]) -> C:
    """Return the config of a class in a file, with changes applied."""
    file, changes = Path(path), list(changes)
    data = _data(file)
    text = file.read_text(encoding="utf-8")
    if not changes:
        return _from_data(cls, data, text, str(path))
    try:
        complete = cls.from_dict(data).to_dict()  # with defaults
    except ConfigError:  # the changes may fix it
        complete = data
    return _from_data(cls, override(complete, changes), text, str(path))


def _data(path: Path, parents: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the data of a file, merged over the file that it extends."""
    real = path.resolve()
    if real in parents:
        raise ConfigError(str(path), [Problem(("extends",), "the file extends itself")])
    try:
        data = parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(str(path), [Problem((), f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), [Problem((), "is not UTF-8 text")]) from None
    if not isinstance(data, dict):
        raise ConfigError(str(path), [Problem((), f"must hold keys and values, not {data!r:.60}")])
    base = data.pop("extends", None)
    return data if base is None else _merged(_data(path.parent / str(base), (*parents, real)), data)


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
