"""Application of Python functions of scalars to whole tensors."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import DTypeLike, EmberTensor, Tensor, TensorLike

__all__ = ["vectorize"]

Dims = tuple[str, ...]

_ARGUMENTS = r"\((?:\w+(?:,\w+)*)?\)(?:,\((?:\w+(?:,\w+)*)?\))*"
_SIGNATURE = re.compile(f"^{_ARGUMENTS}->{_ARGUMENTS}$")


def vectorize(
    fn: Callable[..., TensorLike | tuple[TensorLike, ...]],
    *,
    signature: str | None = None,
    dtype: DTypeLike | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `fn` to each element of its broadcast arguments.

    `fn` takes 0-d tensors and returns a number, a tensor, or a tuple of them. It runs in a Python
    loop: use ops where speed matters.

    Args:
        fn: Function to apply.
        signature: Core axes that `fn` takes and returns as a whole, such as "(n),(n)->()". They are
            the last axes of the arguments.
        dtype: Data type of the results; required for empty arguments. Default: as returned by `fn`.

    Example:
        >>> vectorize(lambda x, y: x if x > y else y * 2)([1, 5], [[3], [4]]).tolist()
        [[6, 5], [8, 5]]
    """
    core_axes = None if signature is None else _parse(signature)

    @functools.wraps(fn)
    def vectorized(*args: TensorLike) -> Any:
        inputs, outputs = core_axes or ([()] * len(args), None)
        if len(args) != len(inputs) or not args:
            raise ArgumentError(
                f"vectorize: got {len(args)} arguments; expected {signature or 'at least one'}"
            )
        tensors, loop, sizes = _broadcast(args, inputs)
        results = [fn(*(x[at] for x in tensors)) for at in range(math.prod(loop))]
        if not results:
            return _empty(outputs, loop, sizes, dtype, tensors[0])
        if not isinstance(results[0], tuple):
            return _join(results, outputs, 0, loop, sizes, dtype, tensors[0])
        columns = list(zip(*results, strict=True))
        return tuple(
            _join(column, outputs, at, loop, sizes, dtype, tensors[0])
            for at, column in enumerate(columns)
        )

    return vectorized


def _parse(signature: str) -> tuple[list[Dims], list[Dims]]:
    """Return the names of the axes of each input and each output."""
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(text):
        raise ArgumentError(
            f"vectorize: signature must look like '(n,k),(k)->(n)'; got {signature!r}"
        )
    sides = [
        [tuple(filter(None, part.split(","))) for part in re.findall(r"\(([^)]*)\)", side)]
        for side in text.split("->")
    ]
    return sides[0], sides[1]


def _broadcast(
    args: Sequence[TensorLike], inputs: list[Dims]
) -> tuple[list[Tensor], tuple[int, ...], dict[str, int]]:
    """Return the arguments as (elements, *core axes), the loop's shape, and the named lengths."""
    home = next((x.backend for x in args if isinstance(x, EmberTensor)), None)
    tensors = [convert_to_tensor(x, backend=home) for x in args]
    sizes: dict[str, int] = {}
    for x, dims in zip(tensors, inputs, strict=True):
        if x.ndim < len(dims):
            raise ShapeError(f"vectorize: shape {x.shape} lacks the core axes ({','.join(dims)})")
        _bind(sizes, dims, x.shape[x.ndim - len(dims) :])
    loops = [x.shape[: x.ndim - len(dims)] for x, dims in zip(tensors, inputs, strict=True)]
    loop = tuple(ops.broadcast_shapes(*loops))
    flat = []
    for x, dims in zip(tensors, inputs, strict=True):
        own = tuple(sizes[name] for name in dims)
        flat.append(ops.reshape(ops.broadcast_to(x, loop + own), (math.prod(loop), *own)))
    return flat, loop, sizes


def _bind(sizes: dict[str, int], dims: Dims, shape: tuple[int, ...]) -> None:
    if len(dims) != len(shape):
        raise ShapeError(f"vectorize: a result has shape {shape}; expected axes ({','.join(dims)})")
    for name, length in zip(dims, shape, strict=True):
        if sizes.setdefault(name, length) != length:
            raise ShapeError(
                f"vectorize: axis {name} has conflicting lengths {sizes[name]} and {length}"
            )


def _join(
    results: Sequence[TensorLike],
    outputs: list[Dims] | None,
    at: int,
    loop: tuple[int, ...],
    sizes: dict[str, int],
    dtype: DTypeLike | None,
    like: Tensor,
) -> Tensor:
    """Return the results of all calls, in the shape of the loop."""
    if outputs is not None and at >= len(outputs):
        raise ArgumentError(
            f"vectorize: fn returned more than the {len(outputs)} results of the signature"
        )
    tensors = [convert_to_tensor(value, dtype=dtype, backend=like.backend) for value in results]
    for x in tensors:
        _bind(sizes, () if outputs is None else outputs[at], x.shape)
    return ops.reshape(ops.stack(tensors), loop + tensors[0].shape)


def _empty(
    outputs: list[Dims] | None,
    loop: tuple[int, ...],
    sizes: dict[str, int],
    dtype: DTypeLike | None,
    like: Tensor,
) -> Tensor | tuple[Tensor, ...]:
    """Return the results of no calls."""
    outputs = outputs or [()]
    if dtype is None or any(name not in sizes for dims in outputs for name in dims):
        raise ArgumentError(f"vectorize: empty arguments {loop} require dtype and known core axes")
    shapes = [loop + tuple(sizes[name] for name in dims) for dims in outputs]
    zeros = tuple(ops.astype(ops.broadcast_to(ops.sum(like), shape), dtype) for shape in shapes)
    return zeros[0] if len(zeros) == 1 else zeros
