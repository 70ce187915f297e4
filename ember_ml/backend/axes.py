"""Axes and shapes: helpers shared by the backends."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence


def listed(axis: int | Sequence[int]) -> tuple[int, ...]:
    """Return axes or lengths as a tuple; a single one may be any integer type."""
    if isinstance(axis, int):
        return (axis,)
    try:
        return tuple(axis)
    except TypeError:
        return (operator.index(axis),)  # type: ignore[arg-type]


def normalize(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return the axes counted from the front, in ascending order; None selects all."""
    if axis is None:
        return tuple(range(ndim))
    given = listed(axis)
    if any(not -ndim <= one < ndim for one in given):
        raise IndexError(f"axis={axis} is out of range for {ndim} dimensions")
    axes = sorted(one % ndim for one in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis={axis} repeats an axis")
    return tuple(axes)


def distinct(axes: Sequence[int] | None, ndim: int, least: int = 0) -> tuple[int, ...]:
    """Return distinct axes of a transform, counted from the front, in the given order.

    Args:
        axes: Axes; None selects all. A single integer is an error.
        ndim: Number of axes of the array.
        least: Number of axes that the transform needs.
    """
    if isinstance(axes, int):
        raise TypeError(f"axes={axes} is not a sequence")
    normalize(axes, ndim)
    out = tuple(range(ndim)) if axes is None else tuple(one % ndim for one in axes)
    if len(out) < least:
        raise ValueError(f"the transform needs at least {least} axes")
    return out


def shifts(axes: int | Sequence[int] | None, ndim: int) -> bool:
    """Return whether a shift of some axes, by default all, moves anything."""
    return ndim > 0 if axes is None else axes != ()


def spacing(d: float) -> float:
    """Check and return the distance between samples."""
    if float(d) == 0:
        raise ValueError("d must not be 0")
    return d


def count(shape: Sequence[int], axis: int | Sequence[int] | None) -> int:
    """Return the number of elements that are reduced to one."""
    return math.prod([shape[one] for one in normalize(axis, len(shape))])


def folded_shape(
    shape: Sequence[int], axis: int | Sequence[int] | None, keepdims: bool
) -> tuple[int, ...]:
    """Return the shape after a reduction of the axes."""
    axes = normalize(axis, len(shape))
    if keepdims:
        return tuple(1 if one in axes else length for one, length in enumerate(shape))
    return tuple(length for one, length in enumerate(shape) if one not in axes)


def within(k: int, n_rows: int, n_cols: int) -> int:
    """Return the diagonal offset, limited to just outside the matrix (no integer overflow)."""
    return max(-n_rows, min(operator.index(k), n_cols))


def sides(n_rows: int, n_cols: int | None) -> tuple[int, int]:
    """Return the number of rows and columns of a matrix, square by default."""
    rows = operator.index(n_rows)
    columns = rows if n_cols is None else operator.index(n_cols)
    if rows < 0 or columns < 0:
        raise ValueError(f"the shape ({rows}, {columns}) has a negative length")
    return rows, columns
