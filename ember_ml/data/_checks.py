"""Checks of arguments that several files share."""

from __future__ import annotations

import operator
from typing import Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, IndexOutOfRangeError


def integer(where: str, name: str, value: Any, least: int) -> int:
    """The value, if it is an integer and not less than `least`."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{where}: {name} must be an integer, not {value!r}")
    number = operator.index(value)
    if number < least:
        raise ArgumentError(f"{where}: {name} must be at least {least}, not {number}")
    return number


def index(where: str, value: Any, length: int) -> int:
    """The place that an index means among `length` examples; a negative one counts from the end."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{where}: an example's index is an integer, not {value!r}")
    number = operator.index(value)
    if not -length <= number < length:
        raise IndexOutOfRangeError(
            f"{where}: the index {number} is out of range for {length} examples"
        )
    return number % length
