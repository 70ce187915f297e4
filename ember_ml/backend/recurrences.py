"""Shapes and chunk lengths of linear recurrences, shared by the backends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml._core.errors import AxisError, ShapeError

Shape = tuple[int, ...]


def geometry(
    a: Sequence[int], b: Sequence[int], h0: Sequence[int] | None, axis: int
) -> tuple[Shape, Shape, int]:
    """Return the shapes of the result and of the state, and the axis counted from the front."""
    shape = _joint(tuple(a), tuple(b))
    if not -len(shape) <= axis < len(shape):
        raise AxisError(
            f"linear_recurrence: axis={axis} is out of range for the shape {shape} of a and b"
        )
    axis %= len(shape)
    state = shape[:axis] + shape[axis + 1 :]
    if h0 is not None and not _fits(tuple(h0), state):
        raise ShapeError(
            f"linear_recurrence: h0 of shape {tuple(h0)} does not broadcast to {state}, the shape "
            f"of a and b without axis {axis}"
        )
    return shape, state, axis


def _joint(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    lengths = []
    for one, other in pairs:
        if one != other and 1 not in (one, other):
            raise ShapeError(
                f"linear_recurrence: the shapes {a} of a and {b} of b do not broadcast"
            )
        lengths.append(other if one == 1 else one)
    return tuple(lengths)


def _fits(h0: Shape, state: Shape) -> bool:
    if len(h0) > len(state):
        return False
    tail = state[len(state) - len(h0) :]
    return all(one in (1, other) for one, other in zip(h0, tail, strict=True))


def chunk_length(length: int) -> int:
    """Return about the square root of the length, which minimizes the number of steps."""
    return 1 << (length.bit_length() // 2)


Strides = tuple[int, int, int]
"""Strides of an array as (outer, time, inner), in elements."""


def strides_in_time(
    lengths: Sequence[int], strides: Sequence[int], shape: Shape, axis: int
) -> Strides | None:
    """Return the strides of an operand that is broadcast to a shape; None if a copy is needed.

    Args:
        lengths: Shape of the operand.
        strides: Strides of the operand, in elements.
        shape: Shape of the result, not empty.
        axis: Time axis of the shape.
    """
    missing = len(shape) - len(lengths)
    full = [0] * missing + [
        0 if length == 1 else stride for length, stride in zip(lengths, strides, strict=True)
    ]
    outer = flat_stride(shape[:axis], full[:axis])
    inner = flat_stride(shape[axis + 1 :], full[axis + 1 :])
    return None if outer is None or inner is None else (outer, full[axis], inner)


def contiguous_strides(shape: Shape, axis: int) -> Strides:
    """Return the strides of a contiguous array of a shape with a time axis."""
    inner = math.prod(shape[axis + 1 :])
    return shape[axis] * inner, inner, 1


def sizes(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return the lengths (outer, time, inner) of a shape with a time axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def flat_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the stride of some axes as one axis; None if a copy is needed.

    Args:
        shape: Lengths of the axes.
        strides: Strides of the axes.
    """
    flat: int | None = None
    expected = 0
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 1:
            continue
        if flat is None:
            flat = stride
        elif stride != expected:
            return None
        expected = stride * length
    return 0 if flat is None else flat
