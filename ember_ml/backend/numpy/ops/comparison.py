"""Elementwise comparisons, tests and logic."""

from __future__ import annotations

import numpy as np
from numpy import equal as equal
from numpy import greater as greater
from numpy import greater_equal as greater_equal
from numpy import isfinite as isfinite
from numpy import isinf as isinf
from numpy import isnan as isnan
from numpy import isneginf as isneginf
from numpy import isposinf as isposinf
from numpy import isreal as isreal
from numpy import less as less
from numpy import less_equal as less_equal
from numpy import logical_and as logical_and
from numpy import logical_not as logical_not
from numpy import logical_or as logical_or
from numpy import logical_xor as logical_xor
from numpy import not_equal as not_equal

from ember_ml.backend.interface import Variants


def isclose(
    x: np.ndarray, y: np.ndarray, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> np.ndarray:
    if not (rtol >= 0 and atol >= 0):
        raise ValueError("the tolerances must not be negative")
    if x.dtype.kind not in "iu":
        return np.isclose(x, y, rtol, atol, equal_nan)
    with np.errstate(over="ignore"):
        distance = np.asarray(np.maximum(x, y) - np.minimum(x, y))
    distance = distance.view(f"u{x.dtype.itemsize}")  # exact, even where it wraps
    return distance <= atol + rtol * np.abs(y.astype(np.float64))


def allclose(
    x: np.ndarray, y: np.ndarray, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> np.ndarray:
    return np.all(isclose(x, y, rtol, atol, equal_nan))


def array_equal(x: np.ndarray, y: np.ndarray, equal_nan: bool = False) -> np.ndarray:
    return np.bool_(np.array_equal(x, y, equal_nan))


def isin(x: np.ndarray, elements: np.ndarray, invert: bool = False) -> np.ndarray:
    return np.isin(x, elements, invert=invert)


_SCALARS = {
    "equal": equal,
    "greater": greater,
    "greater_equal": greater_equal,
    "less": less,
    "less_equal": less_equal,
    "not_equal": not_equal,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
