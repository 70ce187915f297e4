"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import numpy as np
from numpy import acos as acos
from numpy import acosh as acosh
from numpy import asin as asin
from numpy import asinh as asinh
from numpy import atan as atan
from numpy import atan2 as atan2
from numpy import atanh as atanh
from numpy import cos as cos
from numpy import cosh as cosh
from numpy import deg2rad as deg2rad
from numpy import hypot as hypot
from numpy import rad2deg as rad2deg
from numpy import sin as sin
from numpy import sinc as sinc
from numpy import sinh as sinh
from numpy import tan as tan

from ember_ml.backend.interface import Variants


def tanh(x: np.ndarray) -> np.ndarray:
    """Preserve the sign of the imaginary part at the limits +1 and -1."""
    out = np.tanh(x)
    if x.dtype.kind == "c" and np.isinf(x.real).any():
        limit = np.isinf(x.real) & np.isfinite(x.imag)
        out = np.array(out)
        out.imag = np.where(limit, np.copysign(0.0, x.imag), out.imag)
    return out


_SCALARS = {"atan2": atan2, "hypot": hypot}
VARIANTS = Variants(
    by_dtype={"tanh": dict.fromkeys(("float32", "float64"), np.tanh)},
    right_scalars=_SCALARS,
    left_scalars=_SCALARS,
)
