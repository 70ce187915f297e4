"""Changes to nested data by dotted keys."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.registry.base import close_matches


def override(data: Mapping[str, Any], changes: Iterable[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of nested data with changes such as "model.layers.0.num_heads=8" applied.

    Args:
        data: Nested dicts and lists.
        changes: "key=value" strings, whose values are parsed as YAML, or a dict from dotted key
            to value.

    Example:
        >>> from ember_ml import configs
        >>> configs.override({"a": [{"b": 1}]}, ["a.0.b=[2, 3]"])
        {'a': [{'b': [2, 3]}]}
    """
    result = copy.deepcopy(dict(data))
    pairs = changes.items() if isinstance(changes, Mapping) else [_parse(text) for text in changes]
    for key, value in pairs:
        _set(result, key, value)
    return result


def _parse(text: str) -> tuple[str, Any]:
    from ember_ml.configs.files import parse

    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError("override", [Problem((), f"a change must be key=value, not {text!r}")])
    return key.strip(), parse(value, f"override {key.strip()}")


def _set(data: Any, dotted: str, value: Any) -> None:
    keys = dotted.split(".")
    for depth, key in enumerate(keys):
        last = depth == len(keys) - 1
        if isinstance(data, list):
            index = _index(data, key, keys[: depth + 1])
            if last:
                data[index] = value
            else:
                data = data[index]
        elif isinstance(data, dict):
            if last:
                if key == "type" and data.get("type") != value:
                    data.clear()  # the fields belong to another component
                data[key] = value
            elif key not in data:
                hint = close_matches(key, data)
                raise ConfigError(
                    "override", [Problem(tuple(keys[: depth + 1]), f"there is no such key{hint}")]
                )
            elif data[key] is None:
                data[key] = {}
                data = data[key]
            elif isinstance(data[key], str):  # a component given by name
                data[key] = {"type": data[key]}
                data = data[key]
            else:
                data = data[key]
        else:
            raise ConfigError(
                "override", [Problem(tuple(keys[:depth]), f"{data!r:.60} has no keys to change")]
            )


def _index(data: list[Any], key: str, path: list[str]) -> int:
    if not key.lstrip("-").isdigit() or not -len(data) <= int(key) < len(data):
        raise ConfigError(
            "override", [Problem(tuple(path), f"must be an index below {len(data)}, not {key!r}")]
        )
    return int(key)
