"""Vectorized functions: a function of one example, applied to a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, Union, cast

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, native_arrays, one_backend, wrap_all
from ember_ml._core.types import NativeArray
from ember_ml.autodiff.fallback import check_tracing_error
from ember_ml.autodiff.transforms.arguments import (
    as_tensor,
    engine,
    named_in_errors,
)
from ember_ml.autodiff.values import Values
from ember_ml.ops._arguments import normalize_axis

F = TypeVar("F", bound=Callable[..., Any])
AxisTree: TypeAlias = Union[int, "Sequence[AxisTree]", "Mapping[str, AxisTree]", None]
"""An axis, None for "not batched", or a tree of them."""


def vmap(fn: F, in_axes: AxisTree = 0, out_axes: AxisTree = 0) -> F:
    """Return fn vectorized over a new axis of its arguments.

    The framework batches the ops. On NumPy, on a tape, and if the framework cannot batch an op,
    the examples are computed one by one.

    Args:
        fn: Function of tensors and trees of tensors, written for one example.
        in_axes: Batch axis of all tensors, or a tuple with an entry per argument: an axis, None
            for an argument that all examples share, or a tree of these.
        out_axes: Batch axis of the results, or a tree in the structure of the result.

    Returns:
        A function with the arguments of fn, with batched tensors.

    Example:
        >>> vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(ops.eye(2), ops.ones(2)).tolist()
        [1.0, 1.0]
    """

    @named_in_errors("vmap")
    @functools.wraps(fn)
    def batched(*args: object) -> Any:
        leaves, structure = tree.flatten(list(args))
        leaves = [as_tensor(leaf, numbers=False) for leaf in leaves]
        axes = _leaf_axes(in_axes, list(args), leaves)
        indices = list(axes)
        size = _batch_size(leaves, axes)

        def run(tensors: Values) -> object:
            values = list(leaves)
            for index, x in zip(indices, tensors, strict=True):
                values[index] = x
            return fn(*tree.unflatten(structure, values))

        tensors = [leaves[index] for index in indices]
        result_structure, results = _batched(run, tensors, list(axes.values()), size)
        nest = tree.unflatten(result_structure, results)
        moved = [
            x if axis == 0 else ops.moveaxis(x, 0, axis)
            for x, axis in zip(results, _spread(out_axes, nest), strict=True)
        ]
        return tree.unflatten(result_structure, moved)

    return cast(F, batched)


def _batched(
    run: Callable[[Values], object], tensors: Values, axes: list[int], size: int
) -> tuple[tree.Structure, Values]:
    """Return the structure of the result and its leaves, batched along axis 0."""
    backend = one_backend("vmap", tensors)
    native = engine(backend).vmap
    structure: Any = None

    def function(*arrays: NativeArray) -> list[NativeArray]:
        nonlocal structure
        leaves, structure = tree.flatten(run(wrap_all(arrays, backend)))
        return native_arrays([_tensor(leaf, backend) for leaf in leaves])

    if native is not None and not recording.tapes():
        try:
            results = native(function, axes, native_arrays(tensors))
        except Exception as error:
            check_tracing_error(
                error, engine(backend), f"vmap computes the examples one by one on {backend}"
            )
        else:
            return structure, wrap_all(results, backend)
    if size == 0:
        raise ShapeError("vmap: the batch is empty, so the function cannot be called")
    rows = []
    for at in range(size):
        example = [x[(slice(None),) * axis + (at,)] for x, axis in zip(tensors, axes, strict=True)]
        leaves, structure = tree.flatten(run(example))
        rows.append([_tensor(leaf, backend) for leaf in leaves])
    return structure, [ops.stack(column) for column in zip(*rows, strict=True)]


def _tensor(leaf: object, backend: str) -> Tensor:
    x = as_tensor(leaf, backend)
    if not isinstance(x, EmberTensor):
        raise ArgumentTypeError(
            f"vmap: the function must return tensors, not {type(leaf).__name__}"
        )
    return x


def _leaf_axes(in_axes: AxisTree, args: list[object], leaves: list[Any]) -> dict[int, int]:
    """Return index -> batch axis of the batched leaves."""
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
        raise ArgumentError(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments")
    given = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    axes = [axis for part, arg in zip(given, args, strict=True) for axis in _spread(part, arg)]
    batched = {
        index: normalize_axis("vmap", axis, leaf.ndim)
        for index, (axis, leaf) in enumerate(zip(axes, leaves, strict=True))
        if axis is not None and isinstance(leaf, EmberTensor)
    }
    if not batched:
        raise ArgumentError(f"vmap: in_axes={in_axes} selects no tensor; at least one is needed")
    return batched


def _spread(axis: AxisTree, nest: object) -> list[Any]:
    """Return an entry of in_axes or out_axes for each leaf that it applies to."""
    if axis is None or isinstance(axis, int):
        return [axis] * len(tree.leaves_of(nest))
    if isinstance(axis, dict) and isinstance(nest, dict) and axis.keys() != nest.keys():
        raise ArgumentError(f"vmap: the axes {axis} must have the keys {sorted(nest)}")
    parts, values = _children(axis), _children(nest)
    if len(parts) != len(values):
        raise ArgumentError(f"vmap: the axes {axis} must have the structure of their argument")
    return [leaf for pair in zip(parts, values, strict=True) for leaf in _spread(*pair)]


def _children(nest: Any) -> list[Any]:
    return [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else list(nest)


def _batch_size(leaves: list[Any], axes: dict[int, int]) -> int:
    sizes = {leaves[index].shape[axis] for index, axis in axes.items()}
    if len(sizes) != 1:
        raise ShapeError(f"vmap: the batch axes must have one length, not {sorted(sizes)}")
    return sizes.pop()
