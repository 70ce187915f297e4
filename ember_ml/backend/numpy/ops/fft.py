"""Discrete Fourier transforms. Half precision is widened, since NumPy scales in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml._core.errors import ArgumentError, UnsupportedDTypeError
from ember_ml.backend.axes import distinct, shifts, spacing


def _lengths(x: np.ndarray, s: Any, axes: Any, halved: bool) -> tuple[Any, Any]:
    """Return lengths and axes as NumPy expects them: both or neither given, no -1."""
    if s is None:
        return s, axes
    axes = range(-len(s), 0) if axes is None else axes
    own = [x.shape[axis] for axis in axes]
    if halved:
        own[-1] = 2 * (own[-1] - 1)
    return [own[at] if length == -1 else length for at, length in enumerate(s)], tuple(axes)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _along_axis(transform: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(
        x: np.ndarray, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> np.ndarray:
        return transform(_wide(x), n, axis, norm)

    return transformed


def _along_axes(
    transform: Callable[..., Any], default: Any, real: bool = False, halved: bool = False
) -> Callable[..., Any]:
    def transformed(
        x: np.ndarray, s: Any = None, axes: Any = default, norm: str = "backward"
    ) -> np.ndarray:
        s, axes = _lengths(x, s, axes, halved)
        x, axes = _wide(x), distinct(axes, x.ndim, least=int(real))
        if not axes:  # NumPy would return the dtype of x
            return x.astype(np.result_type(x.dtype, np.complex64))
        return transform(x, s, axes, norm)

    return transformed


fft = _along_axis(np.fft.fft)
ifft = _along_axis(np.fft.ifft)
rfft = _along_axis(np.fft.rfft)
irfft = _along_axis(np.fft.irfft)
hfft = _along_axis(np.fft.hfft)
ihfft = _along_axis(np.fft.ihfft)
fftn = _along_axes(np.fft.fftn, None)
ifftn = _along_axes(np.fft.ifftn, None)
rfftn = _along_axes(np.fft.rfftn, None, real=True)
irfftn = _along_axes(np.fft.irfftn, None, real=True, halved=True)
fft2 = _along_axes(np.fft.fftn, (-2, -1))
ifft2 = _along_axes(np.fft.ifftn, (-2, -1))
rfft2 = _along_axes(np.fft.rfftn, (-2, -1), real=True)
irfft2 = _along_axes(np.fft.irfftn, (-2, -1), real=True, halved=True)


def fftshift(x: np.ndarray, axes: int | Sequence[int] | None = None) -> np.ndarray:
    return np.fft.fftshift(x, axes) if shifts(axes, x.ndim) else x


def ifftshift(x: np.ndarray, axes: int | Sequence[int] | None = None) -> np.ndarray:
    """Return the inverse of `fftshift`."""
    return np.fft.ifftshift(x, axes) if shifts(axes, x.ndim) else x


def _samples(n: int, dtype: np.dtype) -> int:
    """Check and return the number of samples."""
    if n < 1:
        raise ArgumentError(f"the number of samples must be positive, not {n}")
    if not np.issubdtype(dtype, np.inexact):
        raise UnsupportedDTypeError(f"frequencies are floating-point numbers, not {dtype}")
    return n


def fftfreq(n: int, *, d: float = 1.0, dtype: np.dtype | None, device: str) -> np.ndarray:
    """Return the frequencies of `fft`."""
    return np.fft.fftfreq(_samples(n, dtype), spacing(d)).astype(dtype)


def rfftfreq(n: int, *, d: float = 1.0, dtype: np.dtype | None, device: str) -> np.ndarray:
    """Return the frequencies of `rfft`."""
    return np.fft.rfftfreq(_samples(n, dtype), spacing(d)).astype(dtype)
