"""Changes of shape and order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mlx.core as mx
import numpy as np
from mlx.core import squeeze as squeeze
from mlx.core import swapaxes as swapaxes
from mlx.core import transpose as permute_dims  # noqa: F401

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError
from ember_ml.backend.axes import listed
from ember_ml.backend.mlx.custom import attach_vjp
from ember_ml.backend.mlx.ops.indexing import take


def reshape(x: mx.array, shape: int | Sequence[int], *, copy: bool | None = None) -> mx.array:
    if copy is False:
        raise ArgumentError(
            "reshape: MLX does not report whether it copies; it does not support copy=False"
        )
    return mx.reshape(x, shape if type(shape) is tuple else listed(shape))


def broadcast_to(x: mx.array, shape: int | Sequence[int]) -> mx.array:
    return mx.broadcast_to(x, listed(shape))


def flatten(x: mx.array, start_axis: int = 0, end_axis: int = -1) -> mx.array:
    if x.ndim and not (-x.ndim <= start_axis < x.ndim and -x.ndim <= end_axis < x.ndim):
        raise IndexError("MLX would use the nearest axis")
    return mx.flatten(x, start_axis, end_axis)


def flip(x: mx.array, axis: int | Sequence[int] | None = None) -> mx.array:
    axes = range(x.ndim) if axis is None else listed(axis)
    key = [slice(None)] * x.ndim
    for one in axes:
        if key[one].step is not None:
            raise AxisError(f"flip: axis={axis} repeats an axis")
        key[one] = slice(None, None, -1)
    return x[tuple(key)]


def roll(
    x: mx.array, shift: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> mx.array:
    if axis is None:
        return mx.roll(x, sum(listed(shift)) % max(x.size, 1))
    axes, shifts = listed(axis), listed(shift)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    whole = tuple(one % max(x.shape[at], 1) for one, at in zip(shifts, axes, strict=True))
    return mx.roll(x, whole, axes)


def tile(x: mx.array, repetitions: int | Sequence[int]) -> mx.array:
    return mx.tile(x, repetitions)


def expand_dims(x: mx.array, axis: int | Sequence[int] = 0) -> mx.array:
    return mx.expand_dims(x, axis)


def repeat(
    x: mx.array, repeats: int | Sequence[int] | mx.array, axis: int | None = None
) -> mx.array:
    if isinstance(repeats, int):
        return mx.repeat(x, repeats, axis)
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu":
        raise ArgumentTypeError(f"repeat: repeats must be integers, not {counts.dtype}")
    length = x.size if axis is None else x.shape[axis]
    counts = np.broadcast_to(counts.astype(np.int64), (length,))
    return take(x, mx.array(np.repeat(np.arange(length), counts)), axis)


def unfold(x: mx.array, axis: int, size: int, step: int = 1) -> mx.array:
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"unfold: axis={axis} is out of range for the shape {x.shape}")
    last = mx.moveaxis(x, axis, -1)
    length = last.shape[-1]
    if not 0 <= size <= length or step < 1:
        raise ArgumentError(
            f"unfold: size={size} must be 0 to {length}, the length, and step={step} positive"
        )
    shape = (*last.shape[:-1], (length - size) // step + 1, size)
    strides = [math.prod(last.shape[at + 1 :]) for at in range(last.ndim - 1)]
    windows = (
        mx.as_strided(last, shape, (*strides, step, 1))
        if math.prod(shape)
        else mx.zeros(shape, x.dtype)
    )
    return mx.moveaxis(windows, -2, axis if axis >= 0 else axis - 1)


def copy(x: mx.array) -> mx.array:
    return mx.array(x)


def view_as_real(x: mx.array) -> mx.array:
    return mx.stack([mx.real(x), mx.imag(x)], axis=-1)


def view_as_complex(x: mx.array) -> mx.array:
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: the last axis must be of length 2; the shape is {x.shape}"
        )
    return make_complex(x[..., 0], x[..., 1])


def make_complex(real: mx.array, imag: mx.array) -> mx.array:
    real, imag = mx.broadcast_arrays(real.astype(mx.float32), imag.astype(mx.float32))
    return _join_parts(real, imag)


def _interleave(real: mx.array, imag: mx.array) -> mx.array:
    """Interleave the parts in memory; `real + 1j * imag` would turn infinities into NaN."""
    return mx.stack([real, imag], axis=-1).view(mx.complex64).squeeze(-1)


_join_parts = attach_vjp(_interleave, lambda primals, g, out: [mx.real(g), mx.imag(g)])
