"""Values that gradients pass."""

from __future__ import annotations

from ember_ml.autodiff.rules import by_operand
from ember_ml.ops.gradients import alias

by_operand(alias, x=lambda g, out, x: g)
