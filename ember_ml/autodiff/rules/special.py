"""VJP rules of special functions."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import arithmetic_vjps, vjp_rule, vjps

_SQRT_PI = math.sqrt(math.pi)
_SQRT_TWO_PI = math.sqrt(2 * math.pi)

vjps(ops.erf, x=lambda g, out, x: g * (2 / _SQRT_PI * ops.exp(-x * x)))
vjps(ops.erfc, x=lambda g, out, x: g * (-2 / _SQRT_PI * ops.exp(-x * x)))
vjps(ops.erfinv, x=lambda g, out, x: g * (_SQRT_PI / 2 * ops.exp(out * out)))
vjps(ops.ndtr, x=lambda g, out, x: g * (ops.exp(x * x * -0.5) / _SQRT_TWO_PI))
vjps(ops.log_ndtr, x=lambda g, out, x: g * (ops.exp(x * x * -0.5 - out) / _SQRT_TWO_PI))
vjps(ops.ndtri, x=lambda g, out, x: g * (_SQRT_TWO_PI * ops.exp(out * out * 0.5)))
vjps(ops.lgamma, x=lambda g, out, x: g * ops.digamma(x))
vjps(ops.digamma, x=lambda g, out, x: g * ops.polygamma(x, 1))
vjps(ops.polygamma, x=lambda g, out, x, n=1: g * ops.polygamma(x, n + 1))
vjps(
    ops.betaln,
    x=lambda g, out, x, y: g * (ops.digamma(x) - ops.digamma(x + y)),
    y=lambda g, out, x, y: g * (ops.digamma(y) - ops.digamma(x + y)),
)
vjps(ops.i0, x=lambda g, out, x: g * ops.i1(x))
vjps(ops.entr, x=lambda g, out, x: g * (-1 - ops.log(x)))
arithmetic_vjps(ops.sigmoid, x=lambda g, out, x: g * (out - out * out))
vjps(ops.log_sigmoid, x=lambda g, out, x: g * ops.sigmoid(-x))
vjps(ops.softplus, x=lambda g, out, x, beta=1.0: g * ops.sigmoid(x * beta))


@vjp_rule(ops.i1)
def _i1(g: Tensor, out: Tensor, x: Tensor) -> Tensor:
    zero = ops.equal(x, 0)
    return g * (ops.i0(x) - ops.where(zero, 0.5, out / ops.where(zero, 1, x)))


@vjp_rule(ops.logit)
def _logit(g: Tensor, out: Tensor, x: Tensor, eps: float | None = None) -> Tensor:
    slope = g / (x * (1 - x))
    if eps is None:
        return slope
    return ops.where(ops.logical_or(ops.less(x, eps), ops.greater(x, 1 - eps)), 0, slope)


vjps(
    ops.xlogy,
    x=lambda g, out, x, y: ops.where(
        ops.logical_and(ops.equal(x, 0), ops.less_equal(y, 0)), 0, ops.xlogy(g, y)
    ),
    y=lambda g, out, x, y: g * x / y,
)
vjps(
    ops.xlog1py,
    x=lambda g, out, x, y: ops.where(
        ops.logical_and(ops.equal(x, 0), ops.less_equal(y, -1)), 0, ops.xlog1py(g, y)
    ),
    y=lambda g, out, x, y: g * x / (y + 1),
)
