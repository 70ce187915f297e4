"""Signs, exponents and neighbors of floats."""

from __future__ import annotations

import numpy as np
from numpy import copysign as copysign
from numpy import frexp as frexp
from numpy import nan_to_num as _nan_to_num
from numpy import nextafter as nextafter
from numpy import signbit as signbit

from ember_ml.backend.interface import Variants


def ldexp(x: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    return np.ldexp(x, np.clip(exponent, -9999, 9999).astype(np.int32))


def nan_to_num(
    x: np.ndarray, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> np.ndarray:
    return _nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


_SCALARS = {"copysign": copysign, "nextafter": nextafter}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
