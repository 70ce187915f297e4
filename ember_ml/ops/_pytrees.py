"""Pytrees of tensors that must agree in structure, shapes and dtypes."""

from __future__ import annotations

import itertools
from typing import Any, TypeVar

from ember_ml import ops
from ember_ml._core import runtime, tree
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import PYTHON_TYPES
from ember_ml._core.errors import ArgumentTypeError, DTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike

T = TypeVar("T")


def home_of(*trees: object) -> str:
    """Return the backend of the first tensor, else the active one."""
    for x in tree.leaves_of(trees):
        if isinstance(x, EmberTensor):
            return x._backend
    return runtime.active()


def as_tensors(x: T, home: str) -> T:
    """Return the pytree with every leaf except None as a tensor."""
    if type(x) is EmberTensor:
        return x
    return tree.map_leaves(
        lambda leaf: (
            leaf
            if leaf is None or isinstance(leaf, EmberTensor)
            else convert_to_tensor(leaf, backend=home)
        ),
        x,
    )


def matched(op: str, name: str, carry: T, new: T) -> T:
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
    agree(op, "the carry", f"the result of {name}", carry, new)
    return new


def selected(op: str, pred: TensorLike, first: tuple[str, T], second: tuple[str, T]) -> T:
    """Return the first pytree where pred is true, else the second."""
    choice = ops.reshape(convert_to_tensor(pred), ())
    x, y = (as_tensors(value, choice.backend) for _, value in (first, second))
    agree(op, first[0], second[0], x, y)
    choice = choice if choice.dtype.kind == "bool" else ops.not_equal(choice, 0)

    def select(one: Tensor | None, other: Tensor | None) -> Tensor | None:
        return None if one is None else ops.where(choice, one, other)

    return tree.map_leaves(select, x, y)


def agree(op: str, one: str, other: str, x: object, y: object) -> None:
    """Raise if two pytrees differ in structure, shapes or dtypes."""
    if alike(x, y):
        return
    leaves, structure = tree.flatten(x)
    others, second = tree.flatten(y)
    if structure != second:
        raise ArgumentTypeError(
            f"{op}: {one} and {other} must have the same structure; got {described(x)} and "
            f"{described(y)}"
        )
    for at, (a, b) in enumerate(zip(leaves, others, strict=True)):
        if a is None and b is None:
            continue
        if not isinstance(a, EmberTensor) or not isinstance(b, EmberTensor):
            raise ArgumentTypeError(
                f"{op}: {one} and {other} must hold tensors{_place(structure, at)}; got "
                f"{described(a)} and {described(b)}"
            )
        if a.shape != b.shape:
            raise ShapeError(
                f"{op}: {one} and {other} must have the same shape{_place(structure, at)}; got "
                f"{a.shape} and {b.shape}"
            )
        if a._tag is not b._tag:
            raise DTypeError(
                f"{op}: {one} and {other} must have the same dtype and backend"
                f"{_place(structure, at)}; got {a.dtype} on {a.backend} and {b.dtype} on "
                f"{b.backend}; cast with astype({a.dtype.name!r})"
            )


def alike(x: Any, y: Any) -> bool:
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
    path = next(itertools.islice(tree.paths(structure), at, None))
    return f" at {path}" if path else ""


def described(x: object) -> str:
    """Return the containers of a pytree as text, with leaves as *."""
    if not isinstance(x, (dict, list, tuple)):
        return "None" if x is None else f"a {type(x).__name__}"
    return repr(tree.map_leaves(lambda leaf: None if leaf is None else _Star(), x))


class _Star:
    def __repr__(self) -> str:
        return "*"
