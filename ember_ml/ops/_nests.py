"""Pytrees of tensors that must agree in structure, shapes and dtypes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.errors import ArgumentTypeError, DTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor

Nest: TypeAlias = Any
"""Tensors in tuples, lists and dicts, however deep."""


def home_of(*nests: Nest) -> str:
    """Return the backend of the first tensor, else the active one."""
    for x in tree.leaves_of(nests):
        if isinstance(x, EmberTensor):
            return x._backend
    return runtime.active()


def as_tensors(nest: Nest, home: str) -> Nest:
    """Return the pytree with every leaf except None as a tensor."""
    if type(nest) is EmberTensor:
        return nest
    return tree.map_leaves(
        lambda x: (
            x if x is None or isinstance(x, EmberTensor) else convert_to_tensor(x, backend=home)
        ),
        nest,
    )


def kept(op: str, name: str, carry: Nest, new: Nest) -> Nest:
    """Return the new carry if it matches the previous one; Python numbers take its dtypes."""
    if alike(carry, new):
        return new
    before, structure = tree.flatten(carry)
    leaves, other = tree.flatten(new)
    if other == structure:
        leaves = [
            convert_to_tensor(x, dtype=old.dtype, backend=old._backend)
            if isinstance(old, EmberTensor) and type(x) in PYTHON_TYPES
            else x
            for x, old in zip(leaves, before, strict=True)
        ]
        new = tree.unflatten(structure, leaves)
    agree(op, "the carry", f"the one that {name} returns", carry, new)
    return new


def selected(op: str, pred: Any, first: tuple[str, Nest], second: tuple[str, Nest]) -> Nest:
    """Return the first pytree where pred is true, else the second."""
    choice = ops.reshape(convert_to_tensor(pred), ())
    x, y = (as_tensors(nest, choice.backend) for _, nest in (first, second))
    agree(op, first[0], second[0], x, y)
    choice = choice if choice.dtype.kind == "bool" else ops.not_equal(choice, 0)

    def select(one: Any, other: Any) -> Any:
        return None if one is None else ops.where(choice, one, other)

    return tree.map_leaves(select, x, y)


def agree(op: str, one: str, other: str, x: Nest, y: Nest) -> None:
    """Raise if two pytrees differ in structure, shapes or dtypes."""
    if alike(x, y):
        return
    leaves, structure = tree.flatten(x)
    others, second = tree.flatten(y)
    if structure != second:
        raise ArgumentTypeError(
            f"{op}: {one} and {other} must have one structure, not {described(x)} and "
            f"{described(y)}"
        )
    for at, (a, b) in enumerate(zip(leaves, others, strict=True)):
        if a is None and b is None:
            continue
        if not isinstance(a, EmberTensor) or not isinstance(b, EmberTensor):
            raise ArgumentTypeError(
                f"{op}: {one} and {other} must hold tensors{_place(structure, at)}, not "
                f"{described(a)} and {described(b)}"
            )
        if a.shape != b.shape:
            raise ShapeError(
                f"{op}: {one} and {other} must have one shape{_place(structure, at)}, not "
                f"{a.shape} and {b.shape}"
            )
        if a._tag is not b._tag:
            raise DTypeError(
                f"{op}: {one} and {other} must have one dtype and backend{_place(structure, at)}, "
                f"not {a.dtype} on {a.backend} and {b.dtype} on {b.backend}; "
                f"cast with astype({a.dtype.name!r})"
            )


def alike(x: Nest, y: Nest) -> bool:
    """Return whether two pytrees agree by a quick check; False is inconclusive."""
    kind = type(x)
    if kind is not type(y):
        return False
    if kind is EmberTensor:
        return x._tag is y._tag and x._data.shape == y._data.shape
    if kind is tuple or kind is list:
        return len(x) == len(y) and all(map(alike, x, y))
    return x is None


def _place(structure: tree.Structure, at: int) -> str:
    """Return the path of a leaf for an error message; empty for the whole pytree."""
    path = next(itertools.islice(_paths(structure), at, None))
    return f" at {path}" if path else ""


def _paths(structure: tree.Structure, path: str = "") -> Iterator[str]:
    if structure.kind is None:
        yield path
        return
    for key, part in zip(
        structure.keys or range(len(structure.parts)), structure.parts, strict=True
    ):
        yield from _paths(part, f"{path}[{key!r}]")


def described(nest: Nest) -> str:
    """Return the containers of a pytree as text, with leaves as *."""
    if nest is None or not isinstance(nest, (dict, list, tuple)):
        return f"a {type(nest).__name__}" if nest is not None else "None"
    marked = tree.map_leaves(lambda x: None if x is None else _Star(), nest)
    return repr(marked)


class _Star:
    def __repr__(self) -> str:
        return "*"
