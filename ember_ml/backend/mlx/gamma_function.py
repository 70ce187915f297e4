"""Log-gamma and its derivatives in float32, with gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx.custom import attach_vjp

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30)
_SHIFT = 8
# lgamma(2 + z) = (1 - euler_gamma) z + the sum of (-z)**k (zeta(k) - 1) / k
_ZETA_MINUS_1 = (
    *(0.6449340668, 0.2020569032, 0.0823232337, 0.0369277551, 0.0173430620, 0.0083492774),
    *(0.0040773562, 0.0020083928, 0.0009945751, 0.0004941886, 0.0002460866, 0.0001227133),
)
_AROUND_TWO = (
    0.0,
    1 - mx.euler_gamma,
    *((-1.0) ** k * value / k for k, value in enumerate(_ZETA_MINUS_1, start=2)),
)


def polynomial(coefficients: Any, x: mx.array) -> mx.array:
    """Evaluate the polynomial with these coefficients, constant first."""
    return functools.reduce(lambda value, coefficient: value * x + coefficient, coefficients[::-1])


def _fraction(x: mx.array) -> mx.array:
    """Return x minus the nearest integer, for which sin(pi x) and tan(pi x) are accurate."""
    return x - mx.round(x)


def _lgamma_positive(x: mx.array) -> mx.array:
    one, two = mx.clip(x, 0.5, 1.5), mx.clip(x, 1.5, 2.5)
    near = mx.where(
        x > 1.5, polynomial(_AROUND_TWO, two - 2), polynomial(_AROUND_TWO, one - 1) - mx.log(one)
    )
    small = x < _SHIFT
    z = mx.where(small, x + _SHIFT, x)
    series = polynomial([b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)], z**-2) / z
    far = (z - 0.5) * mx.log(z) - z + math.log(2 * math.pi) / 2 + series
    factors = (mx.where(small, x + k, 1.0) for k in range(_SHIFT))
    far = far - mx.log(functools.reduce(mx.multiply, factors))
    return mx.where((x < 0.5) | (x > 2.5), far, near)


def differentiable(derivative: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function of one array with the given derivative."""

    def decorate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return attach_vjp(function, lambda primals, g, _: [g * derivative(primals[0])])

    return decorate


def _zeta(s: int, q: mx.array) -> mx.array:
    """Return the Hurwitz zeta function sum((q + k)**-s) for q > 0, by Euler-Maclaurin summation."""
    total = sum(mx.power(q + k, -s) for k in range(_SHIFT))
    z = q + _SHIFT
    total = total + mx.power(z, 1 - s) / (s - 1) + mx.power(z, -s) / 2
    factor = float(s)
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        total = total + bernoulli * factor / math.factorial(2 * k) * mx.power(z, 1 - s - 2 * k)
        factor *= (s + 2 * k - 1) * (s + 2 * k)
    return total


def _cotangent_derivative(n: int) -> list[float]:
    """Return the n-th derivative of cot(t) as coefficients of a polynomial in cot(t)."""
    coefficients = [0.0, 1.0]
    for _ in range(n):
        slope = [k * value for k, value in enumerate(coefficients)][1:]
        coefficients = [-a - b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    return coefficients


@functools.cache
def _polygamma(n: int) -> Callable[[Any], Any]:
    sign = (-1.0) ** (n + 1)

    @differentiable(lambda x: polygamma(n + 1, x))
    def function(x: mx.array) -> mx.array:
        mirrored = sign * math.factorial(n) * _zeta(n + 1, mx.where(x > 0, x, 1 - x))
        fraction = _fraction(x)
        cotangent = polynomial(_cotangent_derivative(n), 1 / mx.tan(math.pi * fraction))
        below = -sign * mirrored - math.pi ** (n + 1) * cotangent
        below = mx.where(fraction == 0, sign * math.inf, below)
        return mx.where(mx.isnan(x), x, mx.where(x > 0, mirrored, below))

    return function


def polygamma(n: int, x: mx.array) -> mx.array:
    """Return the n-th derivative of digamma, by reflection for x <= 0."""
    return digamma(x) if n == 0 else _polygamma(n)(x)


@differentiable(lambda x: polygamma(1, x))
def digamma(x: mx.array) -> mx.array:
    """Return the derivative of lgamma, by reflection for x <= 0."""
    mirrored = mx.where(x > 0, x, 1 - x)
    small = mirrored < _SHIFT
    z = mx.where(small, mirrored + _SHIFT, mirrored)
    series = polynomial([b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)], z**-2) / (z * z)
    passed = sum(mx.where(small, 1 / (mirrored + k), 0.0) for k in range(_SHIFT))
    out = mx.log(z) - 0.5 / z - series - passed
    fraction = _fraction(x)
    below = mx.where(fraction == 0, math.nan, out - math.pi / mx.tan(math.pi * fraction))
    return mx.where(x == 0, -1 / x, mx.where(x > 0, out, below))


@differentiable(lambda x: digamma(x))
def lgamma(x: mx.array) -> mx.array:
    """Return log(|gamma(x)|), by reflection for x <= 0."""
    mirrored = _lgamma_positive(mx.where(x > 0, x, 1 - x))
    sine = mx.abs(mx.sin(math.pi * _fraction(x)))
    out = mx.where(x > 0, mirrored, mx.log(math.pi / sine) - mirrored)
    return mx.where(mx.isnan(x), x, mx.where(mx.isinf(x), math.inf, out))
