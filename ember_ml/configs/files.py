"""Configs in YAML and JSON files (which is YAML, too)."""

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
    """Plain data only; a key given twice is an error, and 1e-3 is a number."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    problem="a key must be a name", problem_mark=key.start_mark
                )
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return node


_Loader.add_implicit_resolver(  # YAML 1.1 reads a float only with a dot and a signed exponent
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*)(\.[\d_]*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def parse(text: str, where: str) -> Any:
    """The data that YAML text holds; an error names the line and column."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{where}{place}", [Problem((), f"no YAML: {error.problem}")]) from None
    except yaml.YAMLError as error:
        raise ConfigError(where, [Problem((), f"no YAML: {error}")]) from None


def load(path: str | os.PathLike[str], changes: Iterable[str] = ()) -> Config:
    """The config in a file, with "dotted.key=value" changes made.

    A key `extends: other.yaml` takes what the file leaves out from another file beside it.
    """
    return _checked(Config, path, changes)


def read(cls: type[C], source: str | os.PathLike[str]) -> C:
    """A config from text or a file."""
    if isinstance(source, str) and ("\n" in source or ": " in source or source.startswith("{")):
        return _from_data(cls, parse(source, cls.__name__), source, cls.__name__)
    return _checked(cls, source, ())


def _checked(cls: type[C], path: str | os.PathLike[str], changes: Iterable[str]) -> C:
    place, changes = Path(path), list(changes)
    data = _data(place)
    text = place.read_text(encoding="utf-8")
    if not changes:
        return _from_data(cls, data, text, str(path))
    try:
        whole = cls.from_dict(data).to_dict()  # with what the file leaves out
    except ConfigError:  # which the changes may mend
        whole = data
    return _from_data(cls, override(whole, changes), text, str(path))


def _data(path: Path, parents: tuple[Path, ...] = ()) -> dict[str, Any]:
    """What a file says, over what the file that it extends says."""
    real = path.resolve()
    if real in parents:
        raise ConfigError(str(path), [Problem(("extends",), "the file extends itself")])
    try:
        data = parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise ConfigError(str(path), [Problem((), f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), [Problem((), "is no text in UTF-8")]) from None
    if not isinstance(data, dict):
        raise ConfigError(str(path), [Problem((), f"must hold keys and values, not {data!r:.60}")])
    base = data.pop("extends", None)
    return data if base is None else _merged(_data(path.parent / str(base), (*parents, real)), data)


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of both, the second's where both have one; a component of another type starts anew."""
    if "type" in over and over["type"] != base.get("type", over["type"]):
        return dict(over)
    made = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = _merged(made[key], value) if both else value
    return made


def _from_data(cls: type[C], data: Any, text: str, where: str) -> C:
    try:
        return cls.from_dict(data)
    except ConfigError as error:
        problems = [_located(problem, text) for problem in error.problems]
        raise ConfigError(where, problems) from None


def _located(problem: Problem, text: str) -> Problem:
    """The problem with the number of the line that its path leads to, if it is in this text."""
    line = _line(text, problem.path)
    return problem if line is None else Problem(problem.path, f"{problem.message} (line {line})")


def _line(text: str, path: tuple[str | int, ...]) -> int | None:
    node = yaml.compose(text, _Loader)
    line = None
    for key in path:
        if isinstance(node, yaml.MappingNode):
            found = [(name, value) for name, value in node.value if name.value == str(key)]
            if not found:
                return line
            line, node = found[0][0].start_mark.line + 1, found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            line = node.start_mark.line + 1
        else:
            return line
    return line
