"""Circular and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

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
from numpy import tanh as tanh

RIGHT_SCALARS = LEFT_SCALARS = {"atan2": atan2, "hypot": hypot}
