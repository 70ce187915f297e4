"""Checks of ranges."""

from __future__ import annotations

import math
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError


def check_range(
    where: str, name: str, value: Any, least: float = 0.0, most: float = math.inf
) -> tuple[float, float]:
    """Return (low, high) of a range.

    Args:
        where: Name of the class in the error.
        name: Name of the argument in the error.
        value: (low, high).
        least: Smallest valid value.
        most: Largest valid value.
    """
    try:
        first, second = value
        low, high = float(first), float(second)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{where}: {name} must be (low, high), not {value!r:.60}") from None
    if not least <= low <= high <= most or math.isinf(high):
        bound = "" if math.isinf(most) else f" and at most {most:g}"
        raise ArgumentError(
            f"{where}: {name} must be (low, high) with low <= high, at least {least:g}{bound}; got "
            f"{value!r}"
        )
    return low, high


def check_probability(where: str, value: object) -> float:
    """Return a probability as a float.

    Args:
        where: Name of the class in the error.
        value: Number in [0, 1].
    """
    return check_range(where, "probability", (value, value), 0.0, 1.0)[0]
