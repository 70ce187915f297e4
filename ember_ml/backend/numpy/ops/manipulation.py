"""Changes of shape and order."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
from numpy import broadcast_to as broadcast_to
from numpy import flip as flip
from numpy import transpose as permute_dims  # noqa: F401
from numpy.lib.stride_tricks import sliding_window_view

from ember_ml._core.errors import ArgumentError, AxisError, ShapeError
from ember_ml.backend.axes import listed


def reshape(x: np.ndarray, shape: int | Sequence[int], *, copy: bool | None = None) -> np.ndarray:
    if min(shape if type(shape) is tuple else listed(shape), default=0) < -1:
        raise ShapeError(f"reshape: shape={shape} has a negative length")
    return x.reshape(shape) if copy is None else np.reshape(x, shape, copy=copy)


def matrix_transpose(x: np.ndarray) -> np.ndarray:
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs two axes or more; the shape is {x.shape}")
    return x.mT


def tile(x: np.ndarray, repetitions: int | Sequence[int]) -> np.ndarray:
    return np.tile(x, repetitions)


def repeat(
    x: np.ndarray, repeats: int | Sequence[int] | np.ndarray, axis: int | None = None
) -> np.ndarray:
    return np.repeat(x, repeats if isinstance(repeats, int) else np.asarray(repeats), axis)


def unfold(x: np.ndarray, axis: int, size: int, step: int = 1) -> np.ndarray:
    if size < 0 or step < 1:
        raise ArgumentError(
            f"unfold: size={size} must not be negative, step={step} must be positive"
        )
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"unfold: axis={axis} is out of range for the shape {x.shape}")
    windows = sliding_window_view(x, size, axis=axis)
    return windows[(slice(None),) * (axis % x.ndim) + (slice(None, None, step),)]


def copy(x: np.ndarray) -> np.ndarray:
    return np.array(x)


def view_as_real(x: np.ndarray) -> np.ndarray:
    return np.stack([np.real(x), np.imag(x)], axis=-1)


def view_as_complex(x: np.ndarray) -> np.ndarray:
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: the last axis must be of length 2; the shape is {x.shape}"
        )
    return make_complex(x[..., 0], x[..., 1])


def make_complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.complex128 if real.dtype == np.float64 else np.complex64)
    out.real = real
    out.imag = imag
    return out


def roll(
    x: np.ndarray, shift: int | Sequence[int], axis: int | Sequence[int] | None = None
) -> np.ndarray:
    return np.roll(x, [operator.index(each) for each in listed(shift)], axis)
