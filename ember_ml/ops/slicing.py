"""Slices of fixed size with dynamic start positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ember_ml._core.dispatch import IndexLike, Op, around, op
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.ops.indexing import index, index_update, like
from ember_ml.ops.joining import stack

__all__ = ["dynamic_slice", "dynamic_update_slice"]


def _check(name: str, sizes: Sequence[int], starts: TensorLike, shape: tuple[int, ...]) -> None:
    count = starts.shape[0] if isinstance(starts, EmberTensor) else len(starts)
    fits = len(sizes) == len(shape) and all(
        0 <= size <= length for size, length in zip(sizes, shape, strict=True)
    )
    if not fits or count != len(shape):
        raise ShapeError(
            f"{name}: {count} starts and sizes {tuple(sizes)} do not fit shape {shape}"
        )


def _key(starts: Sequence[int], sizes: Sequence[int], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the key of a slice that starts at Python integers, clamped to the shape."""
    key = []
    for start, size, length in zip(starts, sizes, shape, strict=True):
        first = max(0, min(start + length if start < 0 else start, length - size))
        key.append(slice(first, first + size))
    return tuple(key)


def _is_plain(starts: TensorLike) -> bool:
    return isinstance(starts, (list, tuple)) and all(type(start) is int for start in starts)


def _joined(starts: TensorLike) -> TensorLike:
    return stack(list(starts)) if isinstance(starts, (list, tuple)) else starts


def _read(op: Op) -> Callable[..., Tensor]:
    name, dispatch = op.name, op.function

    def call(x: TensorLike, starts: TensorLike, sizes: Sequence[int]) -> Tensor:
        if not isinstance(x, EmberTensor):
            return dispatch(x, starts, sizes)
        _check(name, sizes, starts, x.shape)
        if _is_plain(starts):
            return index(x, _key(starts, sizes, x.shape))
        return dispatch(x, _joined(starts), tuple(sizes))

    return call


@around(_read)
@op
def dynamic_slice(x: TensorLike, starts: IndexLike, sizes: Sequence[int]) -> Tensor:
    """Return a slice of fixed size; its start is clamped so that the slice lies within x.

    Args:
        x: Input tensor.
        starts: Start along each axis: one tensor, or a list of numbers and 0-d tensors.
        sizes: Length of the slice along each axis.
    """


def _write(op: Op) -> Callable[..., Tensor]:
    name, dispatch = op.name, op.function

    def call(x: TensorLike, update: TensorLike, starts: TensorLike) -> Tensor:
        if not isinstance(x, EmberTensor):
            return dispatch(x, update, starts)
        update = like(update, x)
        _check(name, update.shape, starts, x.shape)
        if _is_plain(starts):
            return index_update(x, _key(starts, update.shape, x.shape), update)
        return dispatch(x, update, _joined(starts))

    return call


@around(_write)
@op
def dynamic_update_slice(x: TensorLike, update: TensorLike, starts: IndexLike) -> Tensor:
    """Return a copy of x with a slice replaced; its start is clamped as in `dynamic_slice`.

    Args:
        x: Input tensor.
        update: New values of the slice, with as many axes as x. Cast to the dtype of x.
        starts: Start along each axis: one tensor, or a list of numbers and 0-d tensors.
    """
