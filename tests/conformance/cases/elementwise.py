"""Rows for `ember_ml.ops.elementwise`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import binary_cases, unary_cases

binary_cases("elementwise.add", np.add)
binary_cases("elementwise.subtract", np.subtract)
binary_cases("elementwise.divide", np.divide, dtypes=("int32", "float16", "bfloat16", "float32", "float64", "complex64"))
unary_cases("elementwise.exp", np.exp)
