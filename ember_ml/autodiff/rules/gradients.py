"""Values that gradients pass."""

from __future__ import annotations

from ember_ml.autodiff.rules import rules
from ember_ml.ops.gradients import alias

rules(alias, x=lambda g, out, x: g)
