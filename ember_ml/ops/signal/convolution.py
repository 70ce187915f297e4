"""Convolutions of (batch, channels, space...) with learned filters, channels first or last."""

from __future__ import annotations

from ember_ml._core.dispatch import composite, op
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.signal import _geometry as geometry
from ember_ml.ops.signal._geometry import CONVOLUTION, Lengths, Padding, Pairs

__all__ = [
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_general",
]


@op(rule=CONVOLUTION)
def conv_general(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None,
    stride: tuple[int, ...],
    padding: Pairs,
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    """Compute `conv` with all arguments given for each spatial axis, channels first.

    Args:
        x: (batch, in, space...).
        weight: (out, in / groups, kernel...).
        bias: (out,) or None.
        stride: Step between windows.
        padding: Zeros (before, after) on each axis.
        dilation: Step between the elements of a window.
        groups: Number of channel groups.
    """


def _conv(
    name: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Lengths,
    padding: Padding,
    dilation: Lengths,
    groups: int,
    data_format: str,
) -> Tensor:
    x, shape = geometry.channels_first(name, x, rank, data_format)
    filters = weight.shape
    geometry.check_filters(name, shape[1], filters, rank, bias, groups)
    strides = geometry.per_axis(name, "stride", stride, rank)
    dilations = geometry.per_axis(name, "dilation", dilation, rank)
    spans = geometry.extents(filters[2:], dilations)
    pads = geometry.resolve_padding(name, padding, shape[2:], spans, strides)
    return geometry.restore(
        conv_general(x, weight, bias, strides, pads, dilations, groups), data_format
    )


@composite(rule=CONVOLUTION)
def conv(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the cross-correlation of x with filters over one, two or three spatial axes.

    Args:
        x: (batch, in, space...), or (batch, space..., in) for "channels_last".
        weight: Filters, (out, in / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Step between windows; one integer, or one per spatial axis.
        padding: Zeros on each side: an integer, one per axis, a pair (before, after) per axis,
            "valid" (none), "same" (output length: input length / stride, rounded up) or, in one
            dimension, "causal" (all zeros before).
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
    return _conv(
        "conv", x.ndim - 2, x, weight, bias, stride, padding, dilation, groups, data_format
    )


@composite(rule=CONVOLUTION)
def conv1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the cross-correlation of x with filters over one spatial axis.

    Args:
        x: (batch, in, length), or (batch, length, in) for "channels_last".
        weight: Filters, (out, in / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Step between windows; one integer, or one per spatial axis.
        padding: Zeros on each side: an integer, a pair (before, after), "valid" (none), "same"
            (output length: input length / stride, rounded up) or "causal" (all zeros before).
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
    return _conv("conv1d", 1, x, weight, bias, stride, padding, dilation, groups, data_format)


@composite(rule=CONVOLUTION)
def conv2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the cross-correlation of x with filters over two spatial axes.

    Args:
        x: (batch, in, height, width), or (batch, height, width, in) for "channels_last".
        weight: Filters, (out, in / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Step between windows; one integer, or one per spatial axis.
        padding: Zeros on each side: an integer, one per axis, a pair (before, after) per axis,
            "valid" (none) or "same" (output length: input length / stride, rounded up).
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
    return _conv("conv2d", 2, x, weight, bias, stride, padding, dilation, groups, data_format)


@composite(rule=CONVOLUTION)
def conv3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """Return the cross-correlation of x with filters over three spatial axes.

    Args:
        x: (batch, in, depth, height, width), or (batch, depth, height, width, in) for
            "channels_last".
        weight: Filters, (out, in / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Step between windows; one integer, or one per spatial axis.
        padding: Zeros on each side: an integer, one per axis, a pair (before, after) per axis,
            "valid" (none) or "same" (output length: input length / stride, rounded up).
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format)
