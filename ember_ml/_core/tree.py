"""Pytrees: leaves in nested tuples, named tuples, lists and dicts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class Structure(NamedTuple):
    """Containers of a tree: the type of one, its keys if it is a dict, and its parts.

    The type of a leaf is None.
    """

    kind: type | None
    keys: tuple[Any, ...]
    parts: tuple[Structure, ...]


_LEAF = Structure(None, (), ())


def flatten(tree: object) -> tuple[list[Any], Structure]:
    """Return the leaves from left to right (dicts sorted by key), and the structure.

    Args:
        tree: Pytree.
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: object, leaves: list[Any]) -> Structure:
    if isinstance(tree, dict):
        # The order must not depend on how the dict was filled.
        keys = tuple(sorted(tree, key=lambda key: (type(key).__name__, key)))
        return Structure(type(tree), keys, tuple([_flatten(tree[key], leaves) for key in keys]))
    if isinstance(tree, (list, tuple)):
        return Structure(type(tree), (), tuple([_flatten(part, leaves) for part in tree]))
    leaves.append(tree)
    return _LEAF


def unflatten(structure: Structure, leaves: Iterable[object]) -> Any:
    """Return the tree of a structure with other leaves.

    Args:
        structure: Second result of `flatten`.
        leaves: One for each leaf of the structure.
    """
    return _unflatten(structure, iter(leaves))


def _unflatten(structure: Structure, leaves: Iterator[object]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)
    parts = [_unflatten(part, leaves) for part in structure.parts]
    if issubclass(kind, dict):
        return _dict_like(kind, dict(zip(structure.keys, parts, strict=True)))
    return sequence_like(kind, parts)


def _dict_like(kind: type, items: dict[Any, Any]) -> dict[Any, Any]:
    return OrderedDict(items) if kind is OrderedDict else items


def sequence_like(kind: type, parts: list[Any]) -> Any:
    """Return a tuple, named tuple or list of some parts.

    Args:
        kind: Type of the result.
        parts: Elements of the result.
    """
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)


def leaves_of(tree: object) -> list[Any]:
    """Return the leaves from left to right (dicts sorted by key).

    Args:
        tree: Pytree.
    """
    return flatten(tree)[0]


def map_leaves(function: Callable[..., object], tree: object, *others: object) -> Any:
    """Return the tree with `function(leaf, ...)` in place of each leaf.

    Args:
        function: Called with a leaf of each tree.
        tree: Pytree. Its dicts keep the order of their keys.
        others: Pytrees of the same structure.
    """
    if not others:
        return _map(function, tree)
    leaves, structure = flatten(tree)
    columns = [leaves_of(other) for other in others]
    return unflatten(structure, [function(*row) for row in zip(leaves, *columns, strict=True)])


def _map(function: Callable[[Any], object], tree: object) -> Any:
    if isinstance(tree, dict):
        return _dict_like(type(tree), {key: _map(function, tree[key]) for key in tree})
    if isinstance(tree, (list, tuple)):
        return sequence_like(type(tree), [_map(function, part) for part in tree])
    return function(tree)


def paths(structure: Structure, path: str = "") -> Iterator[str]:
    """Yield the place of each leaf, such as "['state'][0]"; "" if the tree is a leaf.

    Args:
        structure: Second result of `flatten`.
        path: Place of the tree itself.
    """
    if structure.kind is None:
        yield path
        return
    keys = structure.keys or range(len(structure.parts))
    for key, part in zip(keys, structure.parts, strict=True):
        yield from paths(part, f"{path}[{key!r}]")
