"""Slices of fixed size whose place may be a value on the device."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand

by_operand(
    ops.dynamic_slice,
    x=lambda g, out, x, starts, sizes: ops.dynamic_update_slice(ops.zeros_like(x), g, starts),
)
by_operand(
    ops.dynamic_update_slice,
    x=lambda g, out, x, update, starts: ops.dynamic_update_slice(g, ops.zeros_like(update), starts),
    update=lambda g, out, x, update, starts: ops.dynamic_slice(g, starts, update.shape),
)
