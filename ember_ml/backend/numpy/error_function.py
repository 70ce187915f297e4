"""Error function and its inverse in float64: rational approximations by Cody and Wichura.

References: W. J. Cody, "Rational Chebyshev approximations for the error function", 1969;
M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Numerators and denominators, the highest power first.
_SMALL = (
    (
        *(1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2),
        *(3.77485237685302021e2, 3.20937758913846947e3),
    ),
    (
        *(1.0, 2.36012909523441209e1, 2.44024637934444173e2),
        *(1.28261652607737228e3, 2.84423683343917062e3),
    ),
)
_MIDDLE = (
    (
        *(2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0),
        *(6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2),
        *(1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    ),
    (
        *(1.0, 1.57449261107098347e1, 1.17693950891312499e2),
        *(5.37181101862009858e2, 1.62138957456669019e3, 3.29079923573345963e3),
        *(4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
    ),
)
_TAIL = (
    (
        *(1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1),
        *(1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4),
    ),
    (
        *(1.0, 2.56852019228982242e0, 1.87295284992346047e0),
        *(5.27905102951428412e-1, 6.05183413124413191e-2, 2.33520497626869185e-3),
    ),
)
_QUANTILE_CENTRE = (
    (
        *(2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4),
        *(4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3),
        *(1.3314166789178437745e2, 3.3871328727963666080e0),
    ),
    (
        *(5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4),
        *(2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2),
        *(4.2313330701600911252e1, 1.0),
    ),
)
_QUANTILE_MIDDLE = (
    (
        *(7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1),
        *(1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0),
        *(4.63033784615654529590e0, 1.42343711074968357734e0),
    ),
    (
        *(1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2),
        *(1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0),
        *(2.05319162663775882187e0, 1.0),
    ),
)
_QUANTILE_TAIL = (
    (
        *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3),
        *(2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0),
        *(5.46378491116411436990e0, 6.65790464350110377720e0),
    ),
    (
        *(2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5),
        *(7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1),
        *(5.99832206555887937690e-1, 1.0),
    ),
)


def _ratio(coefficients: Any, x: np.ndarray) -> np.ndarray:
    return np.polyval(coefficients[0], x) / np.polyval(coefficients[1], x)


def erf_small(x: np.ndarray) -> np.ndarray:
    """Return the error function for |x| <= 0.46875."""
    bounded = np.clip(x, -0.46875, 0.46875)
    return bounded * _ratio(_SMALL, bounded * bounded)


def erfcx(x: np.ndarray) -> np.ndarray:
    """Return exp(x**2) erfc(x) for x >= 0.46875."""
    far = np.maximum(x, 4.0)
    inverse = 1 / (far * far)
    tail = (1 / np.sqrt(np.pi) - inverse * _ratio(_TAIL, inverse)) / far
    return np.where(x <= 4.0, _ratio(_MIDDLE, np.clip(x, 0.46875, 4.0)), tail)


def erfc_positive(x: np.ndarray) -> np.ndarray:
    """Return the complementary error function for x >= 0.46875."""
    x = np.minimum(x, 30.0)
    coarse = np.trunc(x * 16) / 16  # its square is exact
    return np.exp(-coarse * coarse) * np.exp((coarse - x) * (coarse + x)) * erfcx(x)


def erf(x: np.ndarray) -> np.ndarray:
    """Return the error function."""
    size = np.abs(x)
    return np.where(size <= 0.46875, erf_small(x), np.copysign(1 - erfc_positive(size), x))


def erfc(x: np.ndarray) -> np.ndarray:
    """Return 1 - erf(x)."""
    size = np.abs(x)
    tail = erfc_positive(size)
    return np.where(size <= 0.46875, 1 - erf_small(x), np.where(x < 0, 2 - tail, tail))


def quantile(offset: Any, tail: Any) -> np.ndarray:
    """Return the standard normal quantile of p, given as p - 1/2 and as min(p, 1 - p)."""
    centre = offset * _ratio(_QUANTILE_CENTRE, 0.180625 - offset * offset)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.sqrt(-np.log(tail))
    far = np.minimum(np.maximum(r, 5.0), 30.0)
    outer = np.where(r <= 5.0, _ratio(_QUANTILE_MIDDLE, r - 1.6), _ratio(_QUANTILE_TAIL, far - 5.0))
    outer = np.where(tail == 0, np.inf, outer)
    inside = np.where(np.abs(offset) <= 0.425, centre, np.copysign(outer, offset))
    return np.where(tail >= 0, inside, np.nan)


# erf(x) / x as a ratio of polynomials in x^2, good to float32; from Eigen.
_QUICK_TOP = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
_QUICK_BOTTOM = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03),
    *(-7.37332916720468e-03, -1.42647390514189e-02),
)


def _horner(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += x.dtype.type(coefficient)
    return out


def quick_erf(x: np.ndarray) -> np.ndarray:
    """Return the error function of float32 numbers, in float32."""
    x = np.clip(x, -4.0, 4.0)
    square = np.asarray(x * x)
    return x * _horner(_QUICK_TOP, square) / _horner(_QUICK_BOTTOM, square)
