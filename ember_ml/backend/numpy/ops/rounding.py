"""Rounding and clipping."""

from __future__ import annotations

from numpy import ceil as ceil
from numpy import floor as floor
from numpy import fmax as fmax
from numpy import fmin as fmin
from numpy import maximum as maximum
from numpy import minimum as minimum
from numpy import round as round
from numpy import trunc as trunc

from ember_ml.backend.interface import Variants

_SCALARS = {
    "fmax": fmax,
    "fmin": fmin,
    "maximum": maximum,
    "minimum": minimum,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
