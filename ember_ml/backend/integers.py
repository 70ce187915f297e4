"""Integer arithmetic shared by the backends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def round_to_decimals(
    x: Any, decimals: int, limits: tuple[int, int], number: Callable[[int], Any]
) -> Any:
    """Return integers rounded to tens, hundreds and so on, without a detour through floats.

    Ties go to the even multiple. A result that does not fit the dtype wraps around.

    Args:
        x: Array of integers.
        decimals: Number of decimal places; 0 and positive values leave x unchanged.
        limits: Smallest and largest value of the dtype.
        number: Function that returns a Python integer as an array of the dtype.
    """
    if decimals >= 0:
        return x
    half = 5 * 10 ** (-decimals - 1)
    unit = number(_wrapped(2 * half, limits))
    if 2 * half > limits[1]:  # only -unit, 0 and unit are near
        over = (x > number(half)) * unit if half < limits[1] else x * number(0)
        return over - (x < number(-half)) * unit if -half > limits[0] else over
    low = x // unit
    rest = x - low * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (low % number(2) == number(1)))
    return (low + up) * unit


def _wrapped(value: int, limits: tuple[int, int]) -> int:
    """Return the integer modulo the number of values of the dtype."""
    low, high = limits
    return (value - low) % (high - low + 1) + low
