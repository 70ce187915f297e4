"""Transposed convolutions."""

from __future__ import annotations

from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ArgumentError, ShapeError
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
    """Compute the gradient of `conv_general` with respect to its x, channels first.

    Args:
        x: (batch, in, space...).
        weight: (in, out / groups, kernel...).
        bias: (out,) or None.
        stride: Elements of the result for each element of x.
        padding: Elements (before, after) to crop from the full result, which has (length - 1)
            stride + dilation (kernel - 1) + 1 elements; a negative second number appends zeros.
        dilation: Step between the elements of a window.
        groups: Number of channel groups.
    """


def _crops(
    name: str,
    padding: Padding,
    output_padding: Lengths,
    spans: tuple[int, ...],
    stride: tuple[int, ...],
) -> Pairs:
    """Return what is cropped from the full result of a transposed convolution."""
    rank = len(spans)
    more = geometry.per_axis(name, "output_padding", output_padding, rank, 0)
    if padding == "same":
        total = [span - step for span, step in zip(spans, stride, strict=True)]
        crops = tuple([(max(cut, 0) // 2, cut - max(cut, 0) // 2) for cut in total])
    else:
        crops = geometry.pairs(name, 0 if padding == "valid" else padding, rank)
    return tuple([(low, high - extra) for (low, high), extra in zip(crops, more, strict=True)])


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
        longest = (length - 1) * step + span
        if longest - min(high, 0) > geometry.LONGEST:
            raise ArgumentError(
                f"{name}: stride {step} and a window of {span} extend an axis of {length} to "
                f"{longest} elements; at most {geometry.LONGEST} are possible"
            )
        if longest - low - high < 1:
            raise ShapeError(
                f"{name}: padding={padding} crops everything from an axis of length {length}"
            )
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
    """Return the transposed convolution over one, two or three spatial axes.

    `conv` with the same arguments maps the result's shape back to x's shape.

    Args:
        x: (batch, in, space...), or (batch, space..., in) for "channels_last".
        weight: Filters, (in, out / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Elements of the result for each element of x; one integer, or one per spatial axis.
        padding: Elements to crop from the result: an integer, one per axis, a pair (before, after)
            per axis, "valid" (none) or "same" (output length: input length * stride).
        output_padding: Elements to add at the end of the result.
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
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
    """Return the transposed convolution over one spatial axis; see `conv_transpose`.

    Args:
        x: (batch, in, length), or (batch, length, in) for "channels_last".
        weight: Filters, (in, out / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Elements of the result for each element of x; one integer, or one per spatial axis.
        padding: Elements to crop from the result: an integer, one per axis, a pair (before, after)
            per axis, "valid" (none) or "same" (output length: input length * stride).
        output_padding: Elements to add at the end of the result.
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
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
    """Return the transposed convolution over two spatial axes; see `conv_transpose`.

    Args:
        x: (batch, in, height, width), or (batch, height, width, in) for "channels_last".
        weight: Filters, (in, out / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Elements of the result for each element of x; one integer, or one per spatial axis.
        padding: Elements to crop from the result: an integer, one per axis, a pair (before, after)
            per axis, "valid" (none) or "same" (output length: input length * stride).
        output_padding: Elements to add at the end of the result.
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
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
    """Return the transposed convolution over three spatial axes; see `conv_transpose`.

    Args:
        x: (batch, in, depth, height, width), or (batch, depth, height, width, in) for
            "channels_last".
        weight: Filters, (in, out / groups, kernel...) in either format.
        bias: (out,). Default: none.
        stride: Elements of the result for each element of x; one integer, or one per spatial axis.
        padding: Elements to crop from the result: an integer, one per axis, a pair (before, after)
            per axis, "valid" (none) or "same" (output length: input length * stride).
        output_padding: Elements to add at the end of the result.
        dilation: Step between the elements of a window; one integer, or one per spatial axis.
        groups: Number of channel groups, each with its own filters.
        data_format: "channels_first" or "channels_last".
    """
    options = (stride, padding, output_padding, dilation, groups, data_format)
    return _conv_transpose("conv_transpose3d", 3, x, weight, bias, *options)
