"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml.autodiff.rules import rules
from ember_ml.autodiff.rules._shared import conj

_LOG2 = math.log(2.0)
_LOG10 = math.log(10.0)

rules(ops.exp, x=lambda g, out, x: g * conj(out))
rules(ops.exp2, x=lambda g, out, x: g * conj(out * _LOG2))
rules(ops.expm1, x=lambda g, out, x: g * conj(out + 1))
rules(ops.log, x=lambda g, out, x: g / conj(x))
rules(ops.log1p, x=lambda g, out, x: g / conj(x + 1))
rules(ops.log2, x=lambda g, out, x: g / conj(x * _LOG2))
rules(ops.log10, x=lambda g, out, x: g / conj(x * _LOG10))
rules(
    ops.logaddexp,
    x=lambda g, out, x, y: g * ops.sigmoid(x - y),
    y=lambda g, out, x, y: g * ops.sigmoid(y - x),
)
rules(
    ops.logaddexp2,
    x=lambda g, out, x, y: g * ops.sigmoid((x - y) * _LOG2),
    y=lambda g, out, x, y: g * ops.sigmoid((y - x) * _LOG2),
)
rules(ops.sqrt, x=lambda g, out, x: g / conj(2 * out))
rules(ops.rsqrt, x=lambda g, out, x: g * conj(out * out * out * -0.5))
rules(ops.cbrt, x=lambda g, out, x: g / (3 * out * out))
