"""Arithmetic."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.autodiff.rules import rules
from ember_ml.autodiff.rules._shared import conj

rules(ops.add, x=lambda g, out, x, y: g, y=lambda g, out, x, y: g)
rules(ops.subtract, x=lambda g, out, x, y: g, y=lambda g, out, x, y: -g)
rules(
    ops.multiply,
    x=lambda g, out, x, y: g * conj(y),
    y=lambda g, out, x, y: g * conj(x),
)
rules(ops.exp, x=lambda g, out, x: g * conj(out))
