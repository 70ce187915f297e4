"""Rows for `ember_ml.ops.gradients`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import unary_cases

unary_cases("gradients.alias", np.array)
unary_cases("gradients.stop_gradient", np.array)
