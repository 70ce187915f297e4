"""Discrete Fourier transforms. Half precision is widened, since torch lacks it on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ember_ml._core.errors import ArgumentError, UnsupportedDTypeError
from ember_ml.backend.axes import distinct, listed, shifts, spacing

_HALF = (torch.float16, torch.bfloat16)


def _apply(
    transform: Callable[..., Any], x: torch.Tensor, lengths: Any, axes: Any, norm: str
) -> torch.Tensor:
    x = x.float() if x.dtype in _HALF else x
    along = range(x.ndim) if axes is None else listed(axes)
    if x.numel() or not all(x.shape[axis] for axis in along):
        return transform(x, lengths, axes, norm)
    # MKL fails on an empty batch: transform a batch of one and keep none of it.
    filled = torch.constant_pad_nd(x, [pad for n in x.shape[::-1] for pad in (0, int(n == 0))])
    original = tuple(slice(None if length else 0) for length in x.shape)
    return transform(filled, lengths, axes, norm)[original]


def _along_axis(transform: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(
        x: torch.Tensor, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> torch.Tensor:
        return _apply(transform, x, n, axis, norm)

    return transformed


def _along_axes(
    transform: Callable[..., Any], default: Any, real: bool = False
) -> Callable[..., Any]:
    def transformed(
        x: torch.Tensor, s: Any = None, axes: Any = default, norm: str = "backward"
    ) -> torch.Tensor:
        if axes is not None or s is None:
            axes = distinct(axes, x.ndim, least=int(real))
        if axes == ():  # torch would return the dtype of x
            return x.to((x.float() if x.dtype in _HALF else x).dtype.to_complex())
        return _apply(transform, x, s, axes, norm)

    return transformed


fft = _along_axis(torch.fft.fft)
ifft = _along_axis(torch.fft.ifft)
rfft = _along_axis(torch.fft.rfft)
irfft = _along_axis(torch.fft.irfft)
hfft = _along_axis(torch.fft.hfft)
ihfft = _along_axis(torch.fft.ihfft)
fftn = _along_axes(torch.fft.fftn, None)
ifftn = _along_axes(torch.fft.ifftn, None)
rfftn = _along_axes(torch.fft.rfftn, None, real=True)
irfftn = _along_axes(torch.fft.irfftn, None, real=True)
fft2 = _along_axes(torch.fft.fftn, (-2, -1))
ifft2 = _along_axes(torch.fft.ifftn, (-2, -1))
rfft2 = _along_axes(torch.fft.rfftn, (-2, -1), real=True)
irfft2 = _along_axes(torch.fft.irfftn, (-2, -1), real=True)


def fftshift(x: torch.Tensor, axes: int | Sequence[int] | None = None) -> torch.Tensor:
    return torch.fft.fftshift(x, axes) if shifts(axes, x.ndim) else x


def ifftshift(x: torch.Tensor, axes: int | Sequence[int] | None = None) -> torch.Tensor:
    """Return the inverse of `fftshift`."""
    return torch.fft.ifftshift(x, axes) if shifts(axes, x.ndim) else x


def _samples(n: int, dtype: torch.dtype) -> int:
    """Check and return the number of samples."""
    if n < 1:
        raise ArgumentError(f"the number of samples must be positive, not {n}")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise UnsupportedDTypeError(f"frequencies are floating-point numbers, not {dtype}")
    return n


def fftfreq(n: int, *, d: float = 1.0, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    """Return the frequencies of `fft`."""
    return torch.fft.fftfreq(_samples(n, dtype), spacing(d), dtype=dtype, device=device)


def rfftfreq(n: int, *, d: float = 1.0, dtype: torch.dtype | None, device: str) -> torch.Tensor:
    """Return the frequencies of `rfft`."""
    return torch.fft.rfftfreq(_samples(n, dtype), spacing(d), dtype=dtype, device=device)
