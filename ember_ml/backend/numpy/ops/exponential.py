"""Exponentials, logarithms and roots."""

from __future__ import annotations

import numpy as np
from numpy import cbrt as cbrt
from numpy import exp as exp
from numpy import exp2 as exp2
from numpy import log as log
from numpy import log2 as log2
from numpy import log10 as log10
from numpy import logaddexp as logaddexp
from numpy import logaddexp2 as logaddexp2
from numpy import sqrt as sqrt

from ember_ml.backend.interface import Variants


def expm1(x: np.ndarray) -> np.ndarray:
    """Compute complex numbers by parts; NumPy's own misses special cases of the standard."""
    if x.dtype.kind != "c":
        return np.expm1(x)
    size, angle, out = x.real, x.imag, np.empty(np.shape(x), x.dtype)
    with np.errstate(all="ignore"):
        real = np.expm1(size) * np.cos(angle) - 2 * np.square(np.sin(angle / 2))
        imaginary = np.where(angle == 0, angle, np.exp(size) * np.sin(angle))
    endless = np.isinf(size) & ~np.isfinite(angle)
    out.real = np.where(endless, np.where(size > 0, np.inf, -1.0), real) + 0.0
    out.imag = np.where(endless & (size < 0), 0.0, imaginary)
    return out


def log1p(x: np.ndarray) -> np.ndarray:
    """Use NumPy's own for complex numbers, but |1 + x|**2 - 1 where that is exact."""
    out = np.log1p(x)
    if x.dtype.kind != "c":
        return out
    size, out = np.abs(1 + x), np.array(out)
    near = (size > 0.5) & (size < 2.0)
    excess = np.where(near, x.real * (2 + x.real) + x.imag * x.imag, 0.0)
    out.real = np.where(near, np.log1p(excess) / 2, out.real)
    return out


def rsqrt(x: np.ndarray) -> np.ndarray:
    return np.reciprocal(np.sqrt(x))


_SCALARS = {"logaddexp": logaddexp, "logaddexp2": logaddexp2}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
