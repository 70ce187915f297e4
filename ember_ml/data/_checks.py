"""Shared checks of arguments."""

from __future__ import annotations

import operator
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, IndexOutOfRangeError


def integer(where: str, name: str, value: Any, least: int) -> int:
    """Return the value as an int; raise if it is no integer or less than `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{where}: {name} must be an integer, not {value!r}")
    number = operator.index(value)
    if number < least:
        raise ArgumentError(f"{where}: {name} must be at least {least}, not {number}")
    return number


def index(where: str, value: Any, length: int) -> int:
    """Return the index of an example in [0, length); negative indices count from the end."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(
            f"{where}: the index of an example must be an integer, not {value!r}"
        )
    number = operator.index(value)
    if not -length <= number < length:
        raise IndexOutOfRangeError(f"{where}: index {number} is out of range for {length} examples")
    return number % length
