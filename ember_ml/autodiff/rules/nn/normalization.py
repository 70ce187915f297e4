"""VJP rules of normalization over trailing axes."""

from __future__ import annotations

from typing import TypeVar

from ember_ml import ops
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops import nn

OptionalTensor = TypeVar("OptionalTensor", Tensor, Tensor | None)


def _wide(x: OptionalTensor) -> OptionalTensor:
    """Cast half precision to float32, where squares do not overflow."""
    return x if x is None or x.dtype.bits > 16 else ops.astype(x, float32)


def _mean(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return ops.mean(x, axes, keepdims=True)


@vjp_rule(nn.layer_norm)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> tuple[Tensor | None, ...]:
    g, x, weight = _wide(g), _wide(x), _wide(weight)
    axes = tuple(range(axis % x.ndim, x.ndim))
    centered = x - _mean(x, axes)
    scale = ops.rsqrt(_mean(centered * centered, axes) + eps)
    unit = centered * scale
    slope = g if weight is None else g * weight
    grad = scale * (slope - _mean(slope, axes) - unit * _mean(slope * unit, axes))
    return grad, None if weight is None else g * unit, None if bias is None else g


@vjp_rule(nn.rms_norm)
def _(
    g: Tensor,
    out: Tensor,
    x: Tensor,
    weight: Tensor | None = None,
    eps: float = 1e-6,
    axis: int = -1,
) -> tuple[Tensor | None, ...]:
    g, x, weight = _wide(g), _wide(x), _wide(weight)
    axes = tuple(range(axis % x.ndim, x.ndim))
    scale = ops.rsqrt(_mean(x * x, axes) + eps)
    unit = x * scale
    slope = g if weight is None else g * weight
    grad = scale * (slope - unit * _mean(slope * unit, axes))
    return grad, None if weight is None else g * unit
