"""Checks of the integers and axes that ops take."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ember_ml._core.errors import ArgumentTypeError, AxisError

__all__: list[str] = []


def as_integer(op: str, name: str, value: Any) -> int:
    """Return an argument as a Python integer; raise an error that names op and argument."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{op}: {name} must be an integer; got {value!r}") from None


def normalize_axis(op: str, axis: int, ndim: int) -> int:
    """Return the axis counted from the front; raise an error that names the op."""
    if not -ndim <= axis < ndim:
        raise AxisError(f"{op}: axis={axis} is out of range for a tensor of {ndim} axes")
    return axis + ndim if axis < 0 else axis


def normalize_axes(op: str, axis: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return the axes counted from the front; raise if one is repeated."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(normalize_axis(op, one, ndim) for one in given)
    if len(set(axes)) != len(axes):
        raise AxisError(f"{op}: axis={given} repeats an axis")
    return axes
