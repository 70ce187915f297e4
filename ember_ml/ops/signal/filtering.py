"""Convolutions of signals along one axis: direct, by FFT, and causal."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ArgumentError, AxisError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend.fft_lengths import fast_fft_length
from ember_ml.ops._composite import narrowed
from ember_ml.ops.fft import fft, ifft, irfft, rfft
from ember_ml.ops.signal._geometry import CONVOLUTION
from ember_ml.ops.signal.convolution import conv_general

__all__ = [
    "causal_conv1d",
    "causal_conv1d_silu",
    "convolve",
    "correlate",
    "fast_fft_length",
    "fft_conv",
]


@op(rule=rules.CONTRACTION)
def correlate(x: TensorLike, y: TensorLike, mode: str = "valid") -> Tensor:
    """Return the cross-correlation sum_n x[n + k] conj(y[n]) of two signals.

    Args:
        x: First vector.
        y: Second vector.
        mode: "full" (any overlap), "valid" (the shorter within the longer) or "same" (the length of
            the longer, centered in "full").
    """


@composite(rule=rules.CONTRACTION)
def convolve(x: TensorLike, y: TensorLike, mode: str = "full") -> Tensor:
    """Return the convolution sum_n x[k - n] y[n] of two vectors.

    Args:
        x: First vector.
        y: Second vector.
        mode: "full", "valid" or "same", as in `correlate`.
    """
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"convolve: x has shape {x.shape} and y {y.shape}; expected two vectors")
    longer, shorter = (x, y) if len(x) >= len(y) else (y, x)
    return correlate(longer, ops.flip(ops.conj(shorter)), mode)


def _span(mode: str, length: int, taps: int) -> slice:
    """Return the requested part of the full convolution."""
    if mode == "causal":
        return slice(0, length)
    if mode == "full":
        return slice(0, length + taps - 1)
    if mode == "same":
        return slice((taps - 1) // 2, (taps - 1) // 2 + length)
    raise ArgumentError(f"fft_conv: mode must be 'causal', 'full' or 'same'; got {mode!r}")


def _last(x: Tensor, axis: int) -> Tensor:
    """Return x with `axis` (from the end) moved to the end; a vector as is."""
    return x if axis == -1 or x.ndim == 1 else ops.moveaxis(x, axis, -1)


@composite(rule=CONVOLUTION)
def fft_conv(x: TensorLike, kernel: TensorLike, mode: str = "causal", axis: int = -1) -> Tensor:
    """Return the convolution sum_n x[k - n] kernel[n] along an axis, by FFT.

    Args:
        x: Signal, (..., length).
        kernel: (..., taps); the other axes broadcast with those of x.
        mode: "causal" (the first `length` elements of "full": none depends on a later x), "full"
            (length + taps - 1 elements) or "same" (`length` elements in the middle of "full").
        axis: Axis of the signal in x, and of the taps unless the kernel is a vector.
    """
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"fft_conv: axis={axis} is out of range for shape {x.shape}")
    axis = axis - x.ndim if axis >= 0 else axis
    source = x
    x, kernel = _last(x, axis), _last(kernel, axis)
    length, taps = x.shape[-1], kernel.shape[-1]
    if length == 0 or taps == 0:
        raise ShapeError(f"fft_conv: signal ({length}) and kernel ({taps} taps) must not be empty")
    part = _span(mode, length, taps)
    size = fast_fft_length(length + (min(taps, length) if mode == "causal" else taps) - 1)
    kernel = kernel[..., :length] if mode == "causal" else kernel
    if x.dtype.is_complex:
        y = ifft(ops.multiply(fft(x, size), fft(kernel, size)), size)
    else:
        y = irfft(ops.multiply(rfft(x, size), rfft(kernel, size)), size)
    y = y[..., part] if axis == -1 else ops.moveaxis(y[..., part], -1, axis)
    return narrowed(y, source)


@composite(rule=CONVOLUTION)
def causal_conv1d(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """Return each channel convolved with its own short causal filter.

    y[b, c, t] = sum_k weight[c, k] x[b, c, t - taps + 1 + k] + bias[c]

    Args:
        x: (batch, channels, length).
        weight: (channels, taps); the last tap applies to the current element.
        bias: (channels,). Default: none.
    """
    fits = x.ndim == 3 and weight.ndim == 2 and weight.shape[0] == x.shape[1]
    if not fits or 0 in (*weight.shape, x.shape[2]):
        raise ShapeError(
            f"causal_conv1d: x has shape {x.shape} and weight {weight.shape}; "
            "expected (batch, channels, length) and (channels, taps)"
        )
    channels, taps = weight.shape
    if bias is not None and bias.shape != (channels,):
        raise ShapeError(f"causal_conv1d: bias has shape {bias.shape}; expected ({channels},)")
    filters = ops.reshape(weight, (channels, 1, taps))
    return conv_general(x, filters, bias, (1,), ((taps - 1, 0),), (1,), channels)


@composite(rule=rules.REAL_FLOAT)
def causal_conv1d_silu(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """Return `silu(causal_conv1d(x, weight, bias))`, in one kernel where a backend has it.

    Args:
        x: (batch, channels, length).
        weight: (channels, taps); the last tap applies to the current element.
        bias: (channels,). Default: none.
    """
    return ops.silu(causal_conv1d(x, weight, bias))
