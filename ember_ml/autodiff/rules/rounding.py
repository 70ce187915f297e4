"""Bounds."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand


def _greater(g: Any, x: Any, y: Any) -> Any:
    """The share of x in the greater of x and y: half, where they are equal."""
    return ops.where(ops.less(x, y), 0, ops.where(ops.equal(x, y), g * 0.5, g))


by_operand(
    ops.maximum,
    x=lambda g, out, x, y: _greater(g, x, y),
    y=lambda g, out, x, y: _greater(g, y, x),
)
by_operand(
    ops.minimum,
    x=lambda g, out, x, y: _greater(g, y, x),
    y=lambda g, out, x, y: _greater(g, x, y),
)
by_operand(
    ops.fmax,
    x=lambda g, out, x, y: ops.where(ops.equal(x, out), g, 0),
    y=lambda g, out, x, y: ops.where(ops.equal(x, out), 0, g),
)
by_operand(
    ops.fmin,
    x=lambda g, out, x, y: ops.where(ops.equal(x, out), g, 0),
    y=lambda g, out, x, y: ops.where(ops.equal(x, out), 0, g),
)
