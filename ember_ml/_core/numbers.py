"""Checks of arguments that are numbers."""

from __future__ import annotations

import math
from numbers import Integral, Real

from ember_ml._core.errors import ArgumentError, ArgumentTypeError


def real(owner: str, name: str, value: object) -> float:
    """Return a number, or raise an ArgumentTypeError.

    Args:
        owner: Function or class that has the argument.
        name: Name of the argument.
        value: Its value.
    """
    if not isinstance(value, Real):
        raise ArgumentTypeError(f"{owner}: {name} ({value!r:.60}) must be a number")
    return float(value)


def positive(owner: str, name: str, value: object) -> float:
    """Return a finite number above 0, or raise an error; see `real`."""
    number = real(owner, name, value)
    if not 0.0 < number < math.inf:
        raise ArgumentError(f"{owner}: {name} ({value}) must be a finite number above 0")
    return number


def not_negative(owner: str, name: str, value: object) -> float:
    """Return a finite number that is not negative, or raise an error; see `real`."""
    number = real(owner, name, value)
    if not 0.0 <= number < math.inf:
        raise ArgumentError(f"{owner}: {name} ({value}) must be a finite number of at least 0")
    return number


def fraction(owner: str, name: str, value: object) -> float:
    """Return a number from 0 to 1, or raise an error; see `real`."""
    number = real(owner, name, value)
    if not 0.0 <= number <= 1.0:
        raise ArgumentError(f"{owner}: {name} ({value}) must be from 0 to 1")
    return number


def count(owner: str, name: str, value: object, least: int = 0) -> int:
    """Return an integer, or raise an error.

    Args:
        owner: Function or class that has the argument.
        name: Name of the argument.
        value: Its value.
        least: Smallest value that is allowed. Default: 0.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentTypeError(f"{owner}: {name} ({value!r:.60}) must be an integer")
    if value < least:
        raise ArgumentError(f"{owner}: {name} must be at least {least}, not {value}")
    return int(value)
