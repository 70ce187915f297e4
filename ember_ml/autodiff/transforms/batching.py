"""Functions of one example, made functions of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml._core import recording, tree
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.indexing import normalize_axis
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff.fallback import check_tracing_error
from ember_ml.autodiff.transforms._arguments import (
    as_tensor,
    engine,
    natives,
    one_backend,
    wrapped,
)
from ember_ml.autodiff.values import Values


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """fn over a new axis of its arguments.

    Args:
        fn: a function of tensors and nests of them, written for one example.
        in_axes: the axis of the examples in every tensor, or a tuple with an entry (an axis, None
            for what is the same for all examples, or a nest of them) for each argument.
        out_axes: the axis of the examples in the results, or a nest like the result.

    The framework batches the ops. NumPy, and an op that the framework cannot batch, computes the
    examples one after another.

    Example:
        >>> vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))(ops.eye(2), ops.ones(2)).tolist()
        [1.0, 1.0]
    """

    @functools.wraps(fn)
    def batched(*args: Any) -> Any:
        leaves, structure = tree.flatten(list(args))
        leaves = [as_tensor(leaf, numbers=False) for leaf in leaves]
        axes = _in_axes(in_axes, list(args), leaves)
        places = [at for at, axis in enumerate(axes) if axis is not None]
        size = _size(leaves, axes, places)

        def run(tensors: Values) -> Any:
            values = list(leaves)
            for at, x in zip(places, tensors, strict=True):
                values[at] = x
            return fn(*tree.unflatten(structure, values))

        chosen = [leaves[at] for at in places]
        along = [normalize_axis("vmap", axes[at], leaves[at].ndim) for at in places]
        out, results = _batched(run, chosen, along, size)
        return tree.unflatten(out, _moved(results, out_axes, out))

    return batched


def _batched(
    run: Callable[[Values], Any], tensors: Values, axes: list[int], size: int
) -> tuple[tree.Structure, list[Any]]:
    """The structure of the result, and its leaves with the examples along axis 0."""
    backend = one_backend("vmap", tensors)
    native = engine(backend).vmap
    structure: Any = None

    def function(*arrays: Any) -> list[Any]:
        nonlocal structure
        found, structure = tree.flatten(run(wrapped(arrays, backend)))
        return natives([_tensor(leaf, backend) for leaf in found])

    if native is not None and not recording.tapes():
        try:
            results = native(function, axes, natives(tensors))
        except Exception as error:
            check_tracing_error(
                error, engine(backend), f"vmap computes the examples one by one on {backend}"
            )
        else:
            return structure, wrapped(results, backend)
    if size == 0:
        raise ShapeError("vmap: no examples (an axis of length 0) to compute one by one")
    rows = []
    for at in range(size):
        example = [x[(slice(None),) * axis + (at,)] for x, axis in zip(tensors, axes, strict=True)]
        found, structure = tree.flatten(run(example))
        rows.append([_tensor(leaf, backend) for leaf in found])
    return structure, [ops.stack(column) for column in zip(*rows, strict=True)]


def _tensor(leaf: Any, backend: str) -> EmberTensor:
    x = as_tensor(leaf, backend)
    if not isinstance(x, EmberTensor):
        raise ArgumentTypeError(f"vmap: the function gives {type(leaf).__name__}, not a tensor")
    return x


def _in_axes(in_axes: Any, args: list[Any], leaves: list[Any]) -> list[Any]:
    """An axis for each leaf; None for what is not batched."""
    if isinstance(in_axes, (tuple, list)) and len(in_axes) != len(args):
        raise ArgumentError(f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments")
    given = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    axes = [axis for part, arg in zip(given, args, strict=True) for axis in _spread(part, arg)]
    found = [
        axis if isinstance(leaf, EmberTensor) else None
        for axis, leaf in zip(axes, leaves, strict=True)
    ]
    if all(axis is None for axis in found):
        raise ArgumentError(f"vmap: in_axes={in_axes} leaves no tensor to go over")
    return found


def _spread(axis: Any, like: Any) -> list[Any]:
    """An entry of in_axes or out_axes for each leaf of what it stands for."""
    if axis is None or isinstance(axis, int):
        return [axis] * len(tree.leaves_of(like))
    if isinstance(axis, dict) and isinstance(like, dict) and axis.keys() != like.keys():
        raise ArgumentError(f"vmap: the axes {axis} do not have the keys of {sorted(like)}")
    parts, values = _parts(axis), _parts(like)
    if len(parts) != len(values):
        raise ArgumentError(f"vmap: the axes {axis} do not have the structure of their argument")
    return [one for pair in zip(parts, values, strict=True) for one in _spread(*pair)]


def _parts(nest: Any) -> list[Any]:
    return [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else list(nest)


def _size(leaves: list[Any], axes: list[Any], places: list[int]) -> int:
    """How many examples there are."""
    sizes = {leaves[at].shape[normalize_axis("vmap", axes[at], leaves[at].ndim)] for at in places}
    if len(sizes) != 1:
        raise ShapeError(f"vmap: the axes to go over have the lengths {sorted(sizes)}; one is due")
    return sizes.pop()


def _moved(results: list[Any], out_axes: Any, structure: tree.Structure) -> list[Any]:
    nest = tree.unflatten(structure, results)
    axes = _spread(out_axes, nest)
    return [
        x if axis == 0 else ops.moveaxis(x, 0, axis) for x, axis in zip(results, axes, strict=True)
    ]
