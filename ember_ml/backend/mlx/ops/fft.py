"""Discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.core.fft import fft as fft
from mlx.core.fft import fftshift as fftshift
from mlx.core.fft import ifft as ifft
from mlx.core.fft import ifftshift as ifftshift
from mlx.core.fft import irfft as irfft
from mlx.core.fft import rfft as rfft

from ember_ml._core.errors import ArgumentError, UnsupportedDTypeError
from ember_ml.backend.axes import distinct, spacing

_SWAPPED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _lengths(x: mx.array, s: Any, axes: Any, halved: bool) -> tuple[Any, Any]:
    """Return lengths and axes as MLX expects them: both or neither given, no -1."""
    if s is None:
        return s, axes
    axes = range(-len(s), 0) if axes is None else axes
    own = [x.shape[axis] for axis in axes]
    if halved:
        own[-1] = 2 * (own[-1] - 1)
    return [own[at] if length == -1 else length for at, length in enumerate(s)], tuple(axes)


def _along(
    transform: Callable[..., Any], default: Any, real: bool = False, halved: bool = False
) -> Callable[..., Any]:
    def transformed(
        x: mx.array, s: Any = None, axes: Any = default, norm: str = "backward"
    ) -> mx.array:
        s, axes = _lengths(x, s, axes, halved)
        axes = distinct(axes, x.ndim, least=int(real))
        return transform(x, s, axes, norm) if axes else x.astype(mx.complex64)

    return transformed


fftn = _along(mx.fft.fftn, None)
ifftn = _along(mx.fft.ifftn, None)
rfftn = _along(mx.fft.rfftn, None, real=True)
irfftn = _along(mx.fft.irfftn, None, real=True, halved=True)
fft2 = _along(mx.fft.fftn, (-2, -1))
ifft2 = _along(mx.fft.ifftn, (-2, -1))
rfft2 = _along(mx.fft.rfftn, (-2, -1), real=True)
irfft2 = _along(mx.fft.irfftn, (-2, -1), real=True, halved=True)


def hfft(x: mx.array, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
    """Return the real transform of a Hermitian signal."""
    return mx.fft.irfft(mx.conjugate(x.astype(mx.complex64)), n, axis, _SWAPPED.get(norm, norm))


def ihfft(x: mx.array, n: int | None = None, axis: int = -1, norm: str = "backward") -> mx.array:
    """Return the inverse of `hfft`."""
    return mx.conjugate(mx.fft.rfft(x, n, axis, _SWAPPED.get(norm, norm)))


def _samples(n: int, dtype: mx.Dtype) -> int:
    """Check and return the number of samples."""
    if n < 1:
        raise ArgumentError(f"the number of samples must be positive, not {n}")
    if not mx.issubdtype(dtype, mx.inexact):
        raise UnsupportedDTypeError(f"frequencies are floating-point numbers, not {dtype}")
    return n


def fftfreq(n: int, *, d: float = 1.0, dtype: mx.Dtype | None, device: str) -> mx.array:
    """Return the frequencies of `fft`."""
    steps = [*range((_samples(n, dtype) + 1) // 2), *range(-(n // 2), 0)]
    gap = n * spacing(d)
    return mx.array([step / gap for step in steps], dtype)


def rfftfreq(n: int, *, d: float = 1.0, dtype: mx.Dtype | None, device: str) -> mx.array:
    """Return the frequencies of `rfft`."""
    gap = n * spacing(d)
    return mx.array([step / gap for step in range(_samples(n, dtype) // 2 + 1)], dtype)
