"""Rows for `ember_ml.ops.complex_numbers`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import fixed
from tests.conformance.table import COMPLEXES, FLOATS, case, unary_cases

unary_cases("complex_numbers.real", np.real, result="real")
unary_cases("complex_numbers.imag", np.imag, result="real", special=False)
unary_cases("complex_numbers.conj", np.conj)
unary_cases("complex_numbers.angle", np.angle, result="real", special=False)
QUADRANTS = (1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j, complex(-2, -0.0), 2 + 0j, complex(math.inf, 1))
case(
    "complex_numbers.angle", fixed(*QUADRANTS), reference=np.angle, dtypes=COMPLEXES, result="real"
)
case(
    "complex_numbers.angle",
    fixed(math.nan, -2.0, 0.0, 3.0, -math.inf),
    reference=np.angle,
    dtypes=FLOATS,
)
