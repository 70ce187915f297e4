"""How often values occur."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand

by_operand(
    ops.bincount, weights=lambda g, out, x, weights=None, minlength=0: ops.take(g, x, axis=0)
)
