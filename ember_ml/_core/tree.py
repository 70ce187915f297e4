"""Nested tuples, lists and dicts of values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Structure(NamedTuple):
    """How a nest was built: of a leaf (kind None), or of a container's parts."""

    kind: type | None
    keys: tuple[Any, ...]
    parts: tuple[Structure, ...]


_LEAF = Structure(None, (), ())


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a nest from left to right (dicts by key), and its structure."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Structure:
    if isinstance(tree, dict):
        keys = _sorted(tree)
        return Structure(type(tree), keys, tuple(_flatten(tree[key], leaves) for key in keys))
    if isinstance(tree, (list, tuple)):
        return Structure(type(tree), (), tuple([_flatten(part, leaves) for part in tree]))
    leaves.append(tree)
    return _LEAF


def _sorted(keys: Iterable[Any]) -> tuple[Any, ...]:
    """In an order that does not depend on how a dict was filled."""
    return tuple(sorted(keys, key=lambda key: (type(key).__name__, key)))


def unflatten(structure: Structure, leaves: Iterator[Any] | list[Any]) -> Any:
    """The nest of that structure with other leaves."""
    return _build(structure, iter(leaves))


def _build(structure: Structure, leaves: Iterator[Any]) -> Any:
    kind: Any = structure.kind
    if kind is None:
        return next(leaves)
    parts = [_build(part, leaves) for part in structure.parts]
    if structure.keys or issubclass(kind, dict):
        made = dict(zip(structure.keys, parts, strict=True))
        return kind(made) if kind in (dict, OrderedDict) else made
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of a nest."""
    return flatten(tree)[0]


def map_leaves(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """The nest with `function(leaf, ...)` in place of each leaf, of one or several like nests."""
    leaves, structure = flatten(tree)
    columns = [leaves_of(other) for other in others]
    return unflatten(structure, [function(*row) for row in zip(leaves, *columns, strict=True)])
