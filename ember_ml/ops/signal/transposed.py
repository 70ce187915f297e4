"""Transposed convolutions: the steps of a convolution backwards, from few elements to many."""

from __future__ import annotations

from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.signal import _geometry as geometry
from ember_ml.ops.signal._geometry import CONVOLUTION, Lengths, Padding, Pairs

__all__ = [
    "conv_transpose",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "conv_transpose_general",
]


@op(rule=CONVOLUTION)
def conv_transpose_general(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None,
    stride: tuple[int, ...],
    padding: Pairs,
    dilation: tuple[int, ...],
    groups: int,
) -> Tensor:
    """What every `conv_transpose` comes to: the gradient of `conv_general` with respect to its x.

    `padding` is what is cut off from the (length - 1) stride + dilation (kernel - 1) + 1 elements
    of the whole result; a negative second number appends zeros.
    """


def _crops(
    name: str,
    padding: Padding,
    output_padding: Lengths,
    spans: tuple[int, ...],
    stride: tuple[int, ...],
) -> Pairs:
    """What is cut off from the whole result of a transposed convolution."""
    rank = len(spans)
    more = geometry.per_axis(name, "output_padding", output_padding, rank, 0)
    if padding == "same":
        total = [span - step for span, step in zip(spans, stride, strict=True)]
        found = tuple([(max(cut, 0) // 2, cut - max(cut, 0) // 2) for cut in total])
    else:
        found = geometry.pairs(name, 0 if padding == "valid" else padding, rank)
    return tuple([(low, high - extra) for (low, high), extra in zip(found, more, strict=True)])


def _conv_transpose(
    name: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Lengths,
    padding: Padding,
    output_padding: Lengths,
    dilation: Lengths,
    groups: int,
    data_format: str,
) -> Tensor:
    x, shape = geometry.channels_first(name, x, rank, data_format)
    filters = weight.shape
    geometry.check_filters(name, shape[1], filters, rank, bias, groups, transposed=True)
    strides = geometry.per_axis(name, "stride", stride, rank)
    dilations = geometry.per_axis(name, "dilation", dilation, rank)
    spans = geometry.extents(filters[2:], dilations)
    crops = _crops(name, padding, output_padding, spans, strides)
    for length, step, span, (low, high) in zip(shape[2:], strides, spans, crops, strict=True):
        if (length - 1) * step + span - low - high < 1:
            raise ShapeError(f"{name}: padding={padding} leaves nothing of an axis of {length}")
    return geometry.restore(
        conv_transpose_general(x, weight, bias, strides, crops, dilations, groups), data_format
    )


@composite(rule=CONVOLUTION)
def conv_transpose(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    output_padding: Lengths = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """Transposed convolution: what `conv` with the same arguments takes back to x's shape.

    Args:
        x: (batch, in, space...), or (batch, space..., in) with data_format="channels_last".
        weight: (in, out / groups, kernel...) in either format.
        bias: (out,).
        stride: elements of the result for each one of x; one integer, or one for each spatial axis.
        padding: what is cut off from the result: an integer, one for each axis, (before, after) for
            each axis, "valid" (nothing) or "same" (so that length * stride comes out).
        output_padding: elements that the result is longer at its end.
        dilation: step between the elements of a window.
        groups: parts that the channels are cut into, each with filters of its own.
        data_format: "channels_first" or "channels_last".
    """
    options = (stride, padding, output_padding, dilation, groups, data_format)
    return _conv_transpose("conv_transpose", x.ndim - 2, x, weight, bias, *options)


@composite(rule=CONVOLUTION)
def conv_transpose1d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    output_padding: Lengths = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """`conv_transpose` over one spatial axis."""
    options = (stride, padding, output_padding, dilation, groups, data_format)
    return _conv_transpose("conv_transpose1d", 1, x, weight, bias, *options)


@composite(rule=CONVOLUTION)
def conv_transpose2d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    output_padding: Lengths = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """`conv_transpose` over two spatial axes."""
    options = (stride, padding, output_padding, dilation, groups, data_format)
    return _conv_transpose("conv_transpose2d", 2, x, weight, bias, *options)


@composite(rule=CONVOLUTION)
def conv_transpose3d(
    x: TensorLike,
    weight: TensorLike,
    bias: TensorLike | None = None,
    stride: Lengths = 1,
    padding: Padding = 0,
    output_padding: Lengths = 0,
    dilation: Lengths = 1,
    groups: int = 1,
    data_format: str = "channels_first",
) -> Tensor:
    """`conv_transpose` over three spatial axes."""
    options = (stride, padding, output_padding, dilation, groups, data_format)
    return _conv_transpose("conv_transpose3d", 3, x, weight, bias, *options)
