"""Rounding and clipping."""

from __future__ import annotations

import numpy as np
from numpy import ceil as ceil
from numpy import floor as floor
from numpy import fmax as fmax
from numpy import fmin as fmin
from numpy import maximum as maximum
from numpy import minimum as minimum
from numpy import trunc as trunc

from ember_ml.backend.integers import round_to_decimals
from ember_ml.backend.interface import Variants


def round(x: np.ndarray, decimals: int = 0) -> np.ndarray:
    if x.dtype.kind not in "iu":
        return np.round(x, decimals)
    limits = np.iinfo(x.dtype)
    return round_to_decimals(x, decimals, (int(limits.min), int(limits.max)), x.dtype.type)


_SCALARS = {
    "fmax": fmax,
    "fmin": fmin,
    "maximum": maximum,
    "minimum": minimum,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
