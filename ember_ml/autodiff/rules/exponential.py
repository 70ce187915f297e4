"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.autodiff.rules import arithmetic, by_operand

_LOG2 = math.log(2.0)
_LOG10 = math.log(10.0)

arithmetic(ops.exp, x=lambda g, out, x: g * out)
arithmetic(ops.exp2, x=lambda g, out, x: g * (out * _LOG2))
arithmetic(ops.expm1, x=lambda g, out, x: g * (out + 1))
arithmetic(ops.log, x=lambda g, out, x: g / x)
arithmetic(ops.log1p, x=lambda g, out, x: g / (x + 1))
arithmetic(ops.log2, x=lambda g, out, x: g / (x * _LOG2))
arithmetic(ops.log10, x=lambda g, out, x: g / (x * _LOG10))
by_operand(
    ops.logaddexp,
    x=lambda g, out, x, y: g * ops.sigmoid(x - y),
    y=lambda g, out, x, y: g * ops.sigmoid(y - x),
)
by_operand(
    ops.logaddexp2,
    x=lambda g, out, x, y: g * ops.sigmoid((x - y) * _LOG2),
    y=lambda g, out, x, y: g * ops.sigmoid((y - x) * _LOG2),
)
arithmetic(ops.sqrt, x=lambda g, out, x: g / (2 * out))
arithmetic(ops.rsqrt, x=lambda g, out, x: g * (out * out * out * -0.5))
arithmetic(ops.cbrt, x=lambda g, out, x: g / (3 * out * out))
