"""Check of the dotted keys of a config before they are set."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from ember_ml import registry
from ember_ml.configs.errors import ConfigError, Problem
from ember_ml.configs.train_run import TrainRunConfig
from ember_ml.configs.training import TrainerConfig
from ember_ml.registry.base import close_matches


def with_parents(data: Mapping[str, Any], dotted: str) -> dict[str, Any]:
    """Return a copy of a config in which a key can be set; raise an error if it cannot have it.

    Mappings on the way to the key that the config leaves at their defaults are added.

    Args:
        data: The config.
        dotted: Dotted key.
    """
    check_keys(data, dotted)
    result = copy.deepcopy(dict(data))
    node: Any = result
    for key in dotted.split(".")[:-1]:
        node = node.setdefault(key, {}) if isinstance(node, dict) else _element(node, key)
    return result


def check_keys(data: Mapping[str, Any], dotted: str) -> None:
    """Raise an error if a config cannot have a key; it lists similar keys.

    A key is known if the config has it, or if it is a field of the component or the config class
    that the mapping describes.

    Args:
        data: The config.
        dotted: Dotted key.
    """
    keys = dotted.split(".")
    node: Any = data
    for depth, key in enumerate(keys):
        node = {"type": node} if isinstance(node, str) else node
        if not isinstance(node, Mapping):
            if node is None:
                return
            node = _element(node, key)
            continue
        if key not in node:
            known = _fields(node, keys[:depth])
            if key not in known:
                raise _unknown(tuple(keys[: depth + 1]), key, {*node, *known})
            return
        node = node[key]


def _element(node: Any, key: str) -> Any:
    """Return the element of a list; `override` reports an index that is out of range."""
    valid = isinstance(node, list) and key.isdigit() and int(key) < len(node)
    return node[int(key)] if valid else None


def _unknown(path: tuple[str, ...], key: str, known: Iterable[str]) -> ConfigError:
    names = sorted(known)
    hint = close_matches(key, names) or f"; there are {', '.join(names) or 'none'}"
    return ConfigError("SearchSpace.apply", [Problem(path, f"there is no such key{hint}")])


def _fields(node: Mapping[str, Any], path: list[str]) -> set[str]:
    """Return the names of the fields that a mapping may have."""
    if not path:
        is_run = "model" in node and ("data" in node or "trainer" in node)
        return set(TrainRunConfig.model_fields) if is_run else set()
    if path == ["trainer"]:
        return set(TrainerConfig.model_fields)
    return _component_fields(str(node["type"])) if "type" in node else {"type"}


def _component_fields(name: str) -> set[str]:
    """Return the fields of the components of a name, of whatever kind they are."""
    entries = [entry for entry in registry.available() if _has_name(entry, name)]
    return {field for entry in entries for field in entry.config.model_fields}


def _has_name(entry: registry.Entry, name: str) -> bool:
    full = name if "/" in name else f"{entry.kind}/{name}"
    return full in (entry.name, *entry.aliases)
