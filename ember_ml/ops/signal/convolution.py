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
    """What every `conv` comes to: all arguments given for each spatial axis, channels first."""


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
    """Cross-correlation of x with filters, over one, two or three spatial axes.

    Args:
        x: (batch, in, space...), or (batch, space..., in) with data_format="channels_last".
        weight: (out, in / groups, kernel...) in either format.
        bias: (out,).
        stride: step between windows; one integer, or one for each spatial axis.
        padding: zeros on either side: an integer, one for each axis, (before, after) for each axis,
            "valid" (none), "same" (length / stride, rounded up, comes out) or, in one dimension,
            "causal" (all of them before).
        dilation: step between the elements of a window.
        groups: parts that the channels are cut into, each with filters of its own.
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
    """`conv` over one spatial axis."""
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
    """`conv` over two spatial axes."""
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
    """`conv` over three spatial axes."""
    return _conv("conv3d", 3, x, weight, bias, stride, padding, dilation, groups, data_format)
