"""Log-gamma and its derivatives in float64."""

from __future__ import annotations

import math

import numpy as np

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_SHIFT = 10


def zeta(s: int, q: np.ndarray) -> np.ndarray:
    """Return the Hurwitz zeta function sum((q + k)**-s) for q > 0, by Euler-Maclaurin summation."""
    total = sum(np.power(q + k, -float(s)) for k in range(_SHIFT))
    z = q + _SHIFT
    power = np.power(z, -float(s))
    total = total + np.power(z, 1.0 - s) / (s - 1) + power / 2
    factor = float(s)
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        power = power / z if k == 1 else power / (z * z)
        total = total + bernoulli * factor / math.factorial(2 * k) * power
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    return total


# lgamma(2 + z) = (1 - euler_gamma) z + the sum of (-z)**k (zeta(k) - 1) / k
_AROUND_TWO = (
    *((-1.0) ** k * float(zeta(k, 2.0)) / k for k in range(30, 1, -1)),
    1 - np.euler_gamma,
    0.0,
)


def _stirling(x: np.ndarray) -> np.ndarray:
    """Return log(gamma(x)) for x > 0."""
    near = x < _SHIFT
    z = np.where(near, x + _SHIFT, x)
    series = sum(
        bernoulli / (2 * k * (2 * k - 1)) * z ** (1.0 - 2 * k)
        for k, bernoulli in enumerate(_BERNOULLI, start=1)
    )
    out = (z - 0.5) * np.log(z) - z + math.log(2 * math.pi) / 2 + series
    factors = np.prod([np.where(near, x + k, 1.0) for k in range(_SHIFT)], axis=0)
    return out - np.log(factors)


def _lgamma_positive(x: np.ndarray) -> np.ndarray:
    around_two = np.polyval(_AROUND_TWO, np.clip(x, 1.5, 2.5) - 2)
    around_one = np.polyval(_AROUND_TWO, np.clip(x, 0.5, 1.5) - 1)
    around_one = around_one - np.log(np.clip(x, 0.5, 1.5))
    far = np.where((x < 0.5) | (x > 2.5), x, 3.0)
    out = np.where(x > 1.5, around_two, around_one)
    return np.where((x < 0.5) | (x > 2.5), _stirling(far), out)


def _fraction(x: np.ndarray) -> np.ndarray:
    """Return x minus the nearest integer, for which sin(pi x) and tan(pi x) are accurate."""
    return x - np.round(x)


def lgamma(x: np.ndarray) -> np.ndarray:
    """Return log(|gamma(x)|), by reflection for x <= 0."""
    with np.errstate(all="ignore"):
        mirrored = _lgamma_positive(np.where(x > 0, x, 1 - x))
        sine = np.abs(np.sin(np.pi * _fraction(x)))
        out = np.where(x > 0, mirrored, np.log(np.pi / sine) - mirrored)
    return np.where(np.isnan(x), np.nan, np.where(np.isinf(x), np.inf, out))


def _digamma_positive(x: np.ndarray) -> np.ndarray:
    near = x < _SHIFT
    z = np.where(near, x + _SHIFT, x)
    series = sum(
        bernoulli / (2 * k) * z ** (-2.0 * k) for k, bernoulli in enumerate(_BERNOULLI, start=1)
    )
    passed = sum(np.where(near, 1 / (x + k), 0.0) for k in range(_SHIFT))
    return np.log(z) - 0.5 / z - series - passed


def digamma(x: np.ndarray) -> np.ndarray:
    """Return the derivative of lgamma, by reflection for x <= 0."""
    with np.errstate(all="ignore"):
        mirrored = _digamma_positive(np.where(x > 0, x, 1 - x))
        fraction = _fraction(x)
        below = mirrored - np.pi / np.tan(np.pi * fraction)
        below = np.where(fraction == 0, np.nan, below)
        out = np.where(x > 0, mirrored, below)
    return np.where(x == 0, np.copysign(np.inf, -x), out)


def _cotangent_derivative(n: int) -> np.polynomial.Polynomial:
    """Return the n-th derivative of cot(t) as a polynomial in cot(t)."""
    slope = np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    derivative = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        derivative = derivative.deriv() * slope
    return derivative


def polygamma(n: int, x: np.ndarray) -> np.ndarray:
    """Return the n-th derivative of digamma, n >= 1, by reflection for x <= 0."""
    sign = (-1.0) ** (n + 1)
    with np.errstate(all="ignore"):
        mirrored = sign * math.factorial(n) * zeta(n + 1, np.where(x > 0, x, 1 - x))
        fraction = _fraction(x)
        cotangent = _cotangent_derivative(n)(1 / np.tan(np.pi * fraction))
        below = -sign * mirrored - np.pi ** (n + 1) * cotangent
        below = np.where(fraction == 0, sign * np.inf, below)
    return np.where(np.isnan(x), np.nan, np.where(x > 0, mirrored, below))
