"""Errors of datasets and loaders, and checks of their arguments."""

from __future__ import annotations

import operator
from typing import Any

from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    EmberError,
    IndexOutOfRangeError,
)


class WorkerError(EmberError, RuntimeError):
    """Raised if a worker fails to read a batch; the message contains the worker's traceback."""


class DataFileError(EmberError, OSError):
    """Raised for a data file that is missing, damaged, invalid or would be overwritten."""


def check_integer(where: str, name: str, value: object, least: int) -> int:
    """Return a value as an int; raise an error if it is not an integer or less than `least`.

    Args:
        where: Name of the class or function in the error.
        name: Name of the argument in the error.
        value: Value to check.
        least: Smallest valid value.
    """
    number = _integer(where, name, value)
    if number < least:
        raise ArgumentError(f"{where}: {name} must be at least {least}, not {number}")
    return number


def check_index(where: str, value: object, length: int) -> int:
    """Return the index of an example in [0, length); negative indices count from the end.

    Args:
        where: Name of the class in the error.
        value: Index to check.
        length: Number of examples.
    """
    number = _integer(where, "the index of an example", value)
    if not -length <= number < length:
        raise IndexOutOfRangeError(f"{where}: index {number} is out of range for {length} examples")
    return number % length


def _integer(where: str, name: str, value: Any) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:  # also of an array that is not an integer
        pass
    raise ArgumentTypeError(f"{where}: {name} must be an integer, not {value!r:.60}")
