"""Convolutions: the gradient of the signal is a transposed one, and the other way round."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule
from ember_ml.autodiff.rules._shared import conj
from ember_ml.ops.indexing import getitem
from ember_ml.ops.signal._geometry import Pairs
from ember_ml.ops.signal.convolution import conv_general
from ember_ml.ops.signal.transposed import conv_transpose_general

Steps = tuple[int, ...]


def _grouped(x: Any, groups: int) -> Any:
    """(batch, groups * channels, ...) as (channels, groups * batch, ...): the batch is summed."""
    batch, channels, *space = x.shape
    x = ops.reshape(x, (batch, groups, channels // groups, *space))
    x = ops.permute_dims(x, (2, 1, 0, *range(3, x.ndim)))
    return ops.reshape(x, (channels // groups, groups * batch, *space))


def _of_filters(
    long: Any, short: Any, weight: Any, stride: Steps, padding: Pairs, dilation: Steps, groups: int
) -> Any:
    """The gradient of the filters between a signal and its convolution: these two convolved."""
    found = conv_general(
        _grouped(long, groups), _swapped(short), None, dilation, padding, stride, groups
    )
    kernel = weight.shape[2:]
    if found.shape[2:] != kernel:
        found = getitem(found, (..., *[slice(taps) for taps in kernel]))
    return _swapped(found)


def _swapped(x: Any) -> Any:
    return ops.permute_dims(x, (1, 0, *range(2, x.ndim)))


def _of_bias(g: Any) -> Any:
    return ops.sum(g, axis=(0, *range(2, g.ndim)))


@rule(conv_general)
def _(
    g: Any,
    out: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Steps,
    padding: Pairs,
    dilation: Steps,
    groups: int,
) -> Any:
    space = zip(x.shape[2:], g.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    crops = tuple(
        [
            (low, (made - 1) * step + gap * (taps - 1) + 1 - low - length)
            for length, made, taps, step, (low, _), gap in space
        ]
    )
    dx = conv_transpose_general(g, conj(weight), None, stride, crops, dilation, groups)
    dw = _of_filters(conj(x), g, weight, stride, padding, dilation, groups)
    return dx, dw, None if bias is None else _of_bias(g)


@rule(conv_transpose_general)
def _(
    g: Any,
    out: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Steps,
    padding: Pairs,
    dilation: Steps,
    groups: int,
) -> Any:
    db = None if bias is None else _of_bias(g)
    if any(high < 0 for _, high in padding):  # zeros that were put behind the result
        ends = [slice(n + min(high, 0)) for n, (_, high) in zip(g.shape[2:], padding, strict=True)]
        g = getitem(g, (..., *ends))
    pads = tuple([(low, max(high, 0)) for low, high in padding])
    dx = conv_general(g, conj(weight), None, stride, pads, dilation, groups)
    dw = _of_filters(g, conj(x), weight, stride, pads, dilation, groups)
    return dx, dw, db
