"""Arithmetic on axes and shapes, the same for every backend."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence


def listed(axis: int | Sequence[int]) -> tuple[int, ...]:
    """The axes, or lengths, as a tuple; one alone may be any integer, NumPy's too."""
    if isinstance(axis, int):
        return (axis,)
    try:
        return tuple(axis)
    except TypeError:
        return (operator.index(axis),)  # type: ignore[arg-type]


def normalize(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes counted from the front, in ascending order; None means all of them."""
    if axis is None:
        return tuple(range(ndim))
    given = listed(axis)
    if any(not -ndim <= one < ndim for one in given):
        raise IndexError(f"axis={axis} is out of range for {ndim} dimensions")
    axes = sorted(one % ndim for one in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis={axis} names an axis twice")
    return tuple(axes)


def count(shape: Sequence[int], axis: int | Sequence[int] | None) -> int:
    """How many elements are folded into one."""
    return math.prod([shape[one] for one in normalize(axis, len(shape))])


def folded_shape(
    shape: Sequence[int], axis: int | Sequence[int] | None, keepdims: bool
) -> tuple[int, ...]:
    """The shape of what is left after folding the axes."""
    axes = normalize(axis, len(shape))
    if keepdims:
        return tuple(1 if one in axes else length for one, length in enumerate(shape))
    return tuple(length for one, length in enumerate(shape) if one not in axes)


def within(k: int, n_rows: int, n_cols: int) -> int:
    """A diagonal of a matrix, or the one just outside of it: frameworks take only so many bits."""
    return max(-n_rows, min(k, n_cols))
