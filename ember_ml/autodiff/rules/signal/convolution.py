"""VJP rules of convolutions and correlations.

The gradient of a convolution's signal is a transposed convolution, and the reverse.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.autodiff.rules.helpers import conj
from ember_ml.ops.indexing import getitem
from ember_ml.ops.signal import adjoints
from ember_ml.ops.signal._geometry import Pairs
from ember_ml.ops.signal.convolution import conv_general
from ember_ml.ops.signal.filtering import causal_conv1d, causal_conv1d_silu, convolve, correlate
from ember_ml.ops.signal.long_convolution import gated_long_conv, long_conv
from ember_ml.ops.signal.transposed import conv_transpose_general

Steps = tuple[int, ...]


def _grouped(x: Tensor, groups: int) -> Tensor:
    """Move the batch into the channels: (channels, groups * batch, ...), to sum over it."""
    batch, channels, *space = x.shape
    x = ops.reshape(x, (batch, groups, channels // groups, *space))
    x = ops.permute_dims(x, (2, 1, 0, *range(3, x.ndim)))
    return ops.reshape(x, (channels // groups, groups * batch, *space))


def _filter_gradient(
    long: Tensor,
    short: Tensor,
    weight: Tensor,
    stride: Steps,
    padding: Pairs,
    dilation: Steps,
    groups: int,
) -> Tensor:
    """Return the gradient of the filters: the convolution of the long signal with the short one."""
    grad = conv_general(
        _grouped(long, groups), _swap_channels(short), None, dilation, padding, stride, groups
    )
    kernel = weight.shape[2:]
    if grad.shape[2:] != kernel:
        grad = getitem(grad, (..., *[slice(taps) for taps in kernel]))
    return _swap_channels(grad)


def _swap_channels(x: Tensor) -> Tensor:
    return ops.permute_dims(x, (1, 0, *range(2, x.ndim)))


def _bias_gradient(g: Tensor) -> Tensor:
    return ops.sum(g, axis=(0, *range(2, g.ndim)))


@vjp_rule(conv_general)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Steps,
    padding: Pairs,
    dilation: Steps,
    groups: int,
) -> tuple[Tensor, Tensor, Tensor | None]:
    space = zip(x.shape[2:], g.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
    crops = tuple(
        [
            (low, (outputs - 1) * step + gap * (taps - 1) + 1 - low - length)
            for length, outputs, taps, step, (low, _), gap in space
        ]
    )
    dx = conv_transpose_general(g, conj(weight), None, stride, crops, dilation, groups)
    dw = _filter_gradient(conj(x), g, weight, stride, padding, dilation, groups)
    return dx, dw, None if bias is None else _bias_gradient(g)


@vjp_rule(conv_transpose_general)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Steps,
    padding: Pairs,
    dilation: Steps,
    groups: int,
) -> tuple[Tensor, Tensor, Tensor | None]:
    db = None if bias is None else _bias_gradient(g)
    if any(high < 0 for _, high in padding):  # the result was zero-padded at the end
        ends = [slice(n + min(high, 0)) for n, (_, high) in zip(g.shape[2:], padding, strict=True)]
        g = getitem(g, (..., *ends))
    pads = tuple([(low, max(high, 0)) for low, high in padding])
    dx = conv_general(g, conj(weight), None, stride, pads, dilation, groups)
    dw = _filter_gradient(g, conj(x), weight, stride, pads, dilation, groups)
    return dx, dw, db


def _full_gradient(g: Tensor, length: int, taps: int, mode: str) -> Tensor:
    """Pad the gradient of a mode with zeros to the gradient of mode "full"."""
    first = {
        "full": 0,
        "valid": min(length, taps) - 1,
        "same": (taps - 1) // 2 if length >= taps else length // 2,
    }[mode]
    return ops.pad_constant(g, [(first, length + taps - 1 - first - g.shape[0])])


@vjp_rule(correlate)
def _(g: Tensor, out: Tensor, x: Tensor, y: Tensor, mode: str = "valid") -> tuple[Tensor, Tensor]:
    g = _full_gradient(g, x.shape[0], y.shape[0], mode)
    return convolve(g, y, "valid"), ops.flip(conj(correlate(g, x, "valid")))


@vjp_rule(causal_conv1d)
def _(
    g: Tensor, out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    of_x, of_weight, of_bias = adjoints.causal_conv1d_adjoint(g, x, weight)
    return of_x, of_weight, None if bias is None else of_bias


@vjp_rule(causal_conv1d_silu)
def _(
    g: Tensor, out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    of_x, of_weight, of_bias = adjoints.causal_conv1d_silu_adjoint(g, x, weight, bias)
    return of_x, of_weight, None if bias is None else of_bias


@vjp_rule(long_conv)
def _(g: Tensor, out: Tensor, x: Tensor, kernel: Tensor) -> tuple[Tensor, ...]:
    return adjoints.long_conv_adjoint(g, x, kernel)


@vjp_rule(gated_long_conv)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    kernel: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    return *adjoints.gated_long_conv_adjoint(g, x, weight, bias, kernel, mask), None
