"""Convolutions. MLX expects channels last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.windows import check_memory, check_steps

Native = Callable[[Any, Any], Any]


def by_group(native: Callable[[Any, Any, int], Any], groups: int, rank: int) -> Native:
    """Run a native convolution group by group, since MLX has no grouped 3-D convolution."""
    if groups == 1 or rank < 3:
        return lambda x, weight: native(x, weight, groups)

    def loop(x: mx.array, weight: mx.array) -> mx.array:
        parts = zip(mx.split(x, groups, -1), mx.split(weight, groups, 0), strict=True)
        return mx.concatenate([native(part, filters, 1) for part, filters in parts], -1)

    return loop


def of_any_dtype(native: Native, x: mx.array, weight: mx.array) -> mx.array:
    """Run a real convolution on real or complex arrays."""
    if x.dtype != mx.complex64:
        return native(x, weight)
    real = native(x.real, weight.real) - native(x.imag, weight.imag)
    return real + 1j * (native(x.real, weight.imag) + native(x.imag, weight.real))


def finish(y: mx.array, bias: mx.array) -> mx.array:
    """Add the bias and move the channels back to the front."""
    return mx.moveaxis(y if bias is None else y + bias, -1, 1)


def _depthwise(x: mx.array, weight: mx.array, padding: Any, dilation: Any) -> mx.array:
    """Multiply tap by tap, (N, C, L) with (C, 1, K); faster than MLX's own on a CPU."""
    (pad,), (gap,), taps = padding, dilation, weight.shape[-1]
    x = mx.pad(x, [(0, 0), (0, 0), pad])
    length = x.shape[-1] - gap * (taps - 1)
    if length < 1:
        raise ValueError("the window exceeds the padded axis")
    return sum(x[..., at * gap : at * gap + length] * weight[:, :, at] for at in range(taps))


def empty_like(convolve: Callable[..., Any], x: mx.array, *args: Any) -> mx.array:
    """Return the result for an empty batch, whose gradient would crash the process."""
    one = convolve(mx.zeros((1, *x.shape[1:]), x.dtype), *args)  # for its shape: never computed
    return mx.zeros((0, *one.shape[1:]), one.dtype)


def with_channels(x: mx.array, weight: mx.array, groups: int, axis: int) -> tuple[Any, Any]:
    """Return zeros with a channel per group for arrays without channels, which crash MLX.

    Args:
        x: (batch, 0, space...).
        weight: Filters of length 0 along `axis`.
        groups: Number of groups.
        axis: Axis of the input channels of `weight`.
    """
    shape = list(weight.shape)
    shape[axis] = groups if axis == 0 else 1
    return mx.zeros((x.shape[0], groups, *x.shape[2:]), x.dtype), mx.zeros(shape, weight.dtype)


def conv_general(x, weight, bias, stride, padding, dilation, groups):
    check_steps(stride, dilation, groups)
    padded = [n + low + high for n, (low, high) in zip(x.shape[2:], padding, strict=True)]
    check_memory((*x.shape[:2], *padded), x.dtype.size)
    if x.shape[1] == 0:
        x, weight = with_channels(x, weight, groups, 1)
    if len(x) == 0:
        return empty_like(conv_general, x, weight, bias, stride, padding, dilation, groups)
    depthwise = groups == weight.shape[0] == x.shape[1] and stride == (1,) and x.dtype.size > 2
    if depthwise and mx.default_device().type == mx.cpu:
        y = _depthwise(x, weight, padding, dilation)
        return y if bias is None else y + bias[:, None]
    lows, highs = map(list, zip(*padding, strict=True))

    def native(x: mx.array, weight: mx.array, groups: int) -> mx.array:
        return mx.conv_general(x, weight, stride, (lows, highs), dilation, groups=groups)

    every = by_group(native, groups, len(stride))
    return finish(of_any_dtype(every, mx.moveaxis(x, 1, -1), mx.moveaxis(weight, 1, -1)), bias)
