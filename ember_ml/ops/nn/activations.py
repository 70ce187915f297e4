"""Activation functions."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite, unary
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import check_real, in_float32

__all__ = [
    "celu",
    "elu",
    "gelu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hardtanh",
    "leaky_relu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "silu",
    "soft_shrink",
    "softsign",
    "swish",
    "tanhshrink",
    "threshold",
]

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


@unary(rule=rules.REAL)
def relu(x: TensorLike) -> Tensor:
    """Return max(x, 0).

    Args:
        x: Input tensor.
    """


@composite(rule=rules.REAL_FLOAT)
def relu6(x: TensorLike) -> Tensor:
    """Return min(max(x, 0), 6).

    Args:
        x: Input tensor.
    """
    return ops.clip(x, 0.0, 6.0)


@composite(rule=rules.REAL_FLOAT)
def hardtanh(x: TensorLike, min_value: float = -1.0, max_value: float = 1.0) -> Tensor:
    """Return x clipped to [min_value, max_value].

    Args:
        x: Input tensor.
        min_value: Lower bound.
        max_value: Upper bound.
    """
    check_real("hardtanh", min_value=min_value, max_value=max_value)
    return ops.clip(x, min_value, max_value)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def leaky_relu(x: TensorLike, negative_slope: float = 0.01) -> Tensor:
    """Return x where it is positive, else negative_slope * x.

    Args:
        x: Input tensor.
        negative_slope: Slope for negative x.
    """
    check_real("leaky_relu", negative_slope=negative_slope)
    return ops.where(x > 0, x, x * negative_slope)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Return x where it is not negative, else alpha * (exp(x) - 1).

    Args:
        x: Input tensor.
        alpha: Scale of the negative part.
    """
    check_real("elu", alpha=alpha)
    return ops.where(x >= 0, x, ops.expm1(ops.minimum(x, 0.0)) * alpha)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """Return x where it is not negative, else alpha * (exp(x / alpha) - 1).

    Args:
        x: Input tensor.
        alpha: Scale of the negative part.
    """
    check_real("celu", alpha=alpha)
    if alpha == 0:
        raise ArgumentError("celu: alpha must not be 0")
    return ops.where(x >= 0, x, ops.expm1(ops.minimum(x / alpha, 0.0)) * alpha)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def selu(x: TensorLike) -> Tensor:
    """Return the self-normalizing `elu`, which preserves mean 0 and variance 1.

    Reference: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Args:
        x: Input tensor.
    """
    return elu(x, _SELU_ALPHA) * _SELU_SCALE


@composite(rule=rules.REAL_FLOAT)
@in_float32
def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """Return x times the cumulative distribution function of the standard normal at x.

    Args:
        x: Input tensor.
        approximate: Whether to use the tanh approximation; "tanh" means True.
    """
    if approximate in (True, "tanh"):
        return x * 0.5 * (1.0 + ops.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return x * 0.5 * (1.0 + ops.erf(x * math.sqrt(0.5)))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def silu(x: TensorLike) -> Tensor:
    """Return x * sigmoid(x).

    Args:
        x: Input tensor.
    """
    return x * ops.sigmoid(x)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def mish(x: TensorLike) -> Tensor:
    """Return x * tanh(softplus(x)).

    Args:
        x: Input tensor.
    """
    return x * ops.tanh(ops.softplus(x))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def hard_sigmoid(x: TensorLike) -> Tensor:
    """Return the piecewise linear sigmoid min(max(x + 3, 0), 6) / 6.

    Args:
        x: Input tensor.
    """
    return ops.clip(x + 3.0, 0.0, 6.0) / 6.0


@composite(rule=rules.REAL_FLOAT)
@in_float32
def hard_swish(x: TensorLike) -> Tensor:
    """Return x * hard_sigmoid(x).

    Args:
        x: Input tensor.
    """
    return x * hard_sigmoid(x)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def softsign(x: TensorLike) -> Tensor:
    """Return x / (1 + |x|).

    Args:
        x: Input tensor.
    """
    return x / (1.0 + ops.abs(x))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def tanhshrink(x: TensorLike) -> Tensor:
    """Return x - tanh(x).

    Args:
        x: Input tensor.
    """
    return x - ops.tanh(x)


@composite(rule=rules.REAL_FLOAT)
def hard_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Return x where |x| > threshold, else 0.

    Args:
        x: Input tensor.
        threshold: Half width of the zero interval, not negative.
    """
    return ops.where(ops.abs(x) <= threshold, 0.0, x)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def soft_shrink(x: TensorLike, threshold: float = 0.5) -> Tensor:
    """Return x moved toward 0 by the threshold, and 0 where |x| <= threshold.

    Args:
        x: Input tensor.
        threshold: Half width of the zero interval, not negative.
    """
    if not threshold >= 0:
        raise ArgumentError(f"soft_shrink: threshold must be at least 0; got {threshold}")
    return x - ops.clip(x, -threshold, threshold)


@composite(rule=rules.REAL_FLOAT)
def threshold(x: TensorLike, threshold: float, value: float) -> Tensor:
    """Return x where x > threshold, else value.

    Args:
        x: Input tensor.
        threshold: Value that x must exceed.
        value: Replacement for the other elements.
    """
    check_real("threshold", value=value)
    return ops.where(x <= threshold, value, x)


swish = silu
hard_silu = hard_swish
