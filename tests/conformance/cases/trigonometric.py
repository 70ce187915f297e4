"""Rows for `ember_ml.ops.trigonometric`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import fixed, signed
from tests.conformance.table import COMPLEXES, FLOATS, binary_cases, case, unary_cases

UNARY = {
    "sin": (np.sin, -4, 4),
    "cos": (np.cos, -4, 4),
    "tan": (np.tan, -1.4, 1.4),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -4, 4),
    "sinh": (np.sinh, -4, 4),
    "cosh": (np.cosh, -4, 4),
    "tanh": (np.tanh, -4, 4),
    "asinh": (np.arcsinh, -4, 4),
    "acosh": (np.arccosh, 1, 4),
    "atanh": (np.arctanh, -0.9, 0.9),
    "sinc": (np.sinc, -4, 4),
    "deg2rad": (np.deg2rad, -360, 360),
    "rad2deg": (np.rad2deg, -4, 4),
}
ODD = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh")
for name, (reference, low, high) in UNARY.items():
    key = f"trigonometric.{name}"
    unary_cases(key, reference, low=low, high=high)
    case(key, fixed(math.nan, math.inf, -math.inf, 2.5, -2.5), reference=reference, dtypes=FLOATS)
    if name in ODD:
        case(key, fixed(0.0, -0.0, 0.5, -0.5), check=signed(reference), dtypes=FLOATS)
    if name.startswith("a"):
        outside = (2 + 1j, -2 + 1j, 3 - 2j, -3 - 2j, 2j)
        case(key, fixed(*outside), reference=reference, dtypes=COMPLEXES)
case("trigonometric.sin", fixed(1e5, -3e6), reference=np.sin, dtypes=("float32", "float64"))
case("trigonometric.sinc", fixed(0.0, -0.0), reference=np.sinc, dtypes=FLOATS)

NUMBERS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5)
for name, reference in (("atan2", np.arctan2), ("hypot", np.hypot)):
    key = f"trigonometric.{name}"
    binary_cases(key, reference)
    case(key, fixed(*NUMBERS, column=True), fixed(*NUMBERS), check=signed(reference), dtypes=FLOATS)
    case(key, fixed(1.5, -2.0), 2.0, reference=reference, dtypes=FLOATS)
    case(key, -3, fixed(1.5, -2.0), reference=reference, dtypes=FLOATS)
case(
    "trigonometric.hypot",
    fixed(3e38, 1e-38),
    fixed(1e38, 1e-38),
    check=signed(np.hypot),
    dtypes=FLOATS[2:],
)
case(
    "trigonometric.hypot",
    fixed(4e4, 3e-5),
    fixed(3e4, 4e-5),
    reference=np.hypot,
    dtypes=("float16",),
)
