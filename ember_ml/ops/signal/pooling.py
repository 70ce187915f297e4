"""Max and average pooling over windows of (batch, channels, space...)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32
from ember_ml.ops.signal import _geometry as geometry
from ember_ml.ops.signal._geometry import Lengths, Padding, Pairs

__all__ = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "avg_pool_general",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool_general",
]


def _fold(
    x: Tensor,
    join: Callable[[Tensor, Tensor], Tensor],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Tensor:
    """Return the windows reduced to one element each, axis by axis: one strided slice per tap."""
    spans = geometry.extents(kernel, dilation)
    for axis, (taps, step, gap, span) in enumerate(
        zip(kernel, stride, dilation, spans, strict=True)
    ):
        before = (slice(None),) * (axis + 2)
        last = x.shape[axis + 2] - span
        parts = [x[(*before, slice(at, at + last + 1, step))] for at in range(0, taps * gap, gap)]
        x = functools.reduce(join, parts)
    return x


def _pad(x: Tensor, padding: Pairs, value: float) -> Tensor:
    if not any(map(any, padding)):
        return x
    return ops.pad_constant(x, [(0, 0), (0, 0), *padding], value)


@composite(rule=rules.REAL_FLOAT)
def max_pool_general(
    x: TensorLike,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: Pairs,
    dilation: tuple[int, ...],
) -> Tensor:
    """Compute max pooling with all arguments given for each spatial axis, channels first.

    Args:
        x: (batch, channels, space...).
        kernel: Length of the window.
        stride: Step between windows.
        padding: (before, after) on each axis.
        dilation: Step between the elements of a window.
    """
    x = geometry.floating("max_pool", x)
    return _fold(_pad(x, padding, -float("inf")), ops.maximum, kernel, stride, dilation)


@composite(rule=rules.REAL_FLOAT)
def avg_pool_general(
    x: TensorLike, kernel: tuple[int, ...], stride: tuple[int, ...], padding: Pairs
) -> Tensor:
    """Compute the mean of each window, zeros of the padding included, channels first.

    Args:
        x: (batch, channels, space...).
        kernel: Length of the window.
        stride: Step between windows.
        padding: (before, after) on each axis.
    """
    x = geometry.floating("avg_pool", x)
    total = _fold(_pad(x, padding, 0.0), ops.add, kernel, stride, (1,) * len(kernel))
    return ops.divide(total, float(math.prod(kernel)))


def _completed(
    lengths: tuple[int, ...], padding: Pairs, spans: tuple[int, ...], stride: tuple[int, ...]
) -> Pairs:
    """Return the padding with ceil_mode's: the end of a last window that starts in the input."""
    pairs = []
    for length, (low, high), span, step in zip(lengths, padding, spans, stride, strict=True):
        missing = -(length + low + high - span) % step
        starts_outside = length + low + high + missing - span >= length + low
        pairs.append((low, high if starts_outside else high + missing))
    return tuple(pairs)


def _windows(
    name: str,
    lengths: tuple[int, ...],
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Padding,
    dilation: Lengths,
) -> tuple[tuple[int, ...], tuple[int, ...], Pairs, tuple[int, ...]]:
    """Return kernel, stride, padding and dilation for each spatial axis."""
    rank = len(lengths)
    kernel = geometry.per_axis(name, "kernel_size", kernel_size, rank)
    strides = kernel if stride is None else geometry.per_axis(name, "stride", stride, rank)
    dilations = geometry.per_axis(name, "dilation", dilation, rank)
    spans = geometry.extents(kernel, dilations)
    pads = geometry.resolve_padding(name, padding, lengths, spans, strides)
    if any(2 * max(pair) > span for pair, span in zip(pads, spans, strict=True)):
        raise ArgumentError(f"{name}: padding={padding} must be at most half of the window {spans}")
    return kernel, strides, pads, dilations


def _max_pool(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Padding,
    dilation: Lengths,
    ceil_mode: bool,
    data_format: str,
) -> Tensor:
    x, shape = geometry.channels_first(name, x, rank, data_format)
    windows = _windows(name, shape[2:], kernel_size, stride, padding, dilation)
    kernel, strides, pads, dilations = windows
    if ceil_mode:
        pads = _completed(shape[2:], pads, geometry.extents(kernel, dilations), strides)
    return geometry.restore(max_pool_general(x, kernel, strides, pads, dilations), data_format)


def _avg_pool(
    name: str,
    rank: int,
    x: Tensor,
    kernel_size: Lengths,
    stride: Lengths | None,
    padding: Padding,
    ceil_mode: bool,
    count_include_pad: bool,
    data_format: str,
) -> Tensor:
    x, shape = geometry.channels_first(name, x, rank, data_format)
    kernel, strides, pads, _ = _windows(name, shape[2:], kernel_size, stride, padding, 1)
    counted = pads if count_include_pad else ((0, 0),) * rank
    pads = _completed(shape[2:], pads, kernel, strides) if ceil_mode else pads
    y = avg_pool_general(x, kernel, strides, pads)
    if pads != counted:
        ones = _pad(ops.ones_like(x[:1, :1]), counted, 1.0)
        rest = tuple([(a - c, b - d) for (a, b), (c, d) in zip(pads, counted, strict=True)])
        y = ops.divide(y, avg_pool_general(ones, kernel, strides, rest))
    return geometry.restore(y, data_format)


@composite(rule=rules.REAL_FLOAT)
def max_pool1d(
    x: TensorLike,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Padding = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the maximum of each window along one spatial axis.

    Args:
        x: (batch, channels, length), or (batch, length, channels) for "channels_last".
        kernel_size: Length of the window; one integer, or one per spatial axis.
        stride: Step between windows. Default: `kernel_size`.
        padding: Elements (-inf) on each side, as in `conv`; at most half the window.
        dilation: Step between the elements of a window.
        ceil_mode: Whether a last window may extend beyond the end.
        data_format: "channels_first" or "channels_last".
    """
    options = (kernel_size, stride, padding, dilation, ceil_mode, data_format)
    return _max_pool("max_pool1d", 1, x, *options)


@composite(rule=rules.REAL_FLOAT)
def max_pool2d(
    x: TensorLike,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Padding = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the maximum of each window over two spatial axes.

    Args:
        x: (batch, channels, height, width), or (batch, height, width, channels) for
            "channels_last".
        kernel_size: Length of the window; one integer, or one per spatial axis.
        stride: Step between windows. Default: `kernel_size`.
        padding: Elements (-inf) on each side, as in `conv`; at most half the window.
        dilation: Step between the elements of a window.
        ceil_mode: Whether a last window may extend beyond the end.
        data_format: "channels_first" or "channels_last".
    """
    options = (kernel_size, stride, padding, dilation, ceil_mode, data_format)
    return _max_pool("max_pool2d", 2, x, *options)


@composite(rule=rules.REAL_FLOAT)
def max_pool3d(
    x: TensorLike,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Padding = 0,
    dilation: Lengths = 1,
    ceil_mode: bool = False,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the maximum of each window over three spatial axes.

    Args:
        x: (batch, channels, depth, height, width), with channels at the end for "channels_last".
        kernel_size: Length of the window; one integer, or one per spatial axis.
        stride: Step between windows. Default: `kernel_size`.
        padding: Elements (-inf) on each side, as in `conv`; at most half the window.
        dilation: Step between the elements of a window.
        ceil_mode: Whether a last window may extend beyond the end.
        data_format: "channels_first" or "channels_last".
    """
    options = (kernel_size, stride, padding, dilation, ceil_mode, data_format)
    return _max_pool("max_pool3d", 3, x, *options)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def avg_pool1d(
    x: TensorLike,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the mean of each window along one spatial axis.

    Args:
        x: (batch, channels, length), or (batch, length, channels) for "channels_last".
        kernel_size: Length of the window; one integer, or one per spatial axis.
        stride: Step between windows. Default: `kernel_size`.
        padding: Zeros on each side, as in `conv`; at most half the window.
        ceil_mode: Whether a last window may extend beyond the end.
        count_include_pad: Whether padding counts as elements of a window.
        data_format: "channels_first" or "channels_last".
    """
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, data_format)
    return _avg_pool("avg_pool1d", 1, x, *options)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def avg_pool2d(
    x: TensorLike,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the mean of each window over two spatial axes.

    Args:
        x: (batch, channels, height, width), or (batch, height, width, channels) for
            "channels_last".
        kernel_size: Length of the window; one integer, or one per spatial axis.
        stride: Step between windows. Default: `kernel_size`.
        padding: Zeros on each side, as in `conv`; at most half the window.
        ceil_mode: Whether a last window may extend beyond the end.
        count_include_pad: Whether padding counts as elements of a window.
        data_format: "channels_first" or "channels_last".
    """
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, data_format)
    return _avg_pool("avg_pool2d", 2, x, *options)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def avg_pool3d(
    x: TensorLike,
    kernel_size: Lengths,
    stride: Lengths | None = None,
    padding: Padding = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the mean of each window over three spatial axes.

    Args:
        x: (batch, channels, depth, height, width), with channels at the end for "channels_last".
        kernel_size: Length of the window; one integer, or one per spatial axis.
        stride: Step between windows. Default: `kernel_size`.
        padding: Zeros on each side, as in `conv`; at most half the window.
        ceil_mode: Whether a last window may extend beyond the end.
        count_include_pad: Whether padding counts as elements of a window.
        data_format: "channels_first" or "channels_last".
    """
    options = (kernel_size, stride, padding, ceil_mode, count_include_pad, data_format)
    return _avg_pool("avg_pool3d", 3, x, *options)
