"""Normalization over trailing axes."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.dtype import float32
from ember_ml.autodiff.rules import rule
from ember_ml.ops import nn


def _wide(x: Any) -> Any:
    """Half precision in float32, whose squares do not overflow."""
    return x if x is None or x.dtype.bits > 16 else ops.astype(x, float32)


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    return ops.mean(x, axes, keepdims=True)


@rule(nn.layer_norm)
def _layer_norm(
    g: Any,
    out: Any,
    x: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> Any:
    g, x, weight = _wide(g), _wide(x), _wide(weight)
    axes = tuple(range(axis % x.ndim, x.ndim))
    centred = x - _mean(x, axes)
    scale = ops.rsqrt(_mean(centred * centred, axes) + eps)
    unit = centred * scale
    slope = g if weight is None else g * weight
    grad = scale * (slope - _mean(slope, axes) - unit * _mean(slope * unit, axes))
    return grad, None if weight is None else g * unit, None if bias is None else g


@rule(nn.rms_norm)
def _rms_norm(
    g: Any, out: Any, x: Any, weight: Any = None, eps: float = 1e-6, axis: int = -1
) -> Any:
    g, x, weight = _wide(g), _wide(x), _wide(weight)
    axes = tuple(range(axis % x.ndim, x.ndim))
    scale = ops.rsqrt(_mean(x * x, axes) + eps)
    unit = x * scale
    slope = g if weight is None else g * weight
    grad = scale * (slope - unit * _mean(slope * unit, axes))
    return grad, None if weight is None else g * unit
