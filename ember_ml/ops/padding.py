"""Padding of tensors at their edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ember_ml._core.convert import check_number
from ember_ml._core.dispatch import composite, op
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._arguments import as_integer
from ember_ml.ops.indexing import index
from ember_ml.ops.joining import concat
from ember_ml.ops.manipulation import broadcast_to, flip

__all__ = ["pad", "pad_constant"]

Widths: TypeAlias = "int | Sequence[int] | Sequence[Sequence[int]]"


@op
def pad_constant(
    x: TensorLike, widths: Sequence[tuple[int, int]], value: bool | int | float | complex = 0
) -> Tensor:
    """Return x padded with a constant along each axis.

    Args:
        x: Input tensor.
        widths: (before, after) for each axis.
        value: Value of the padding.
    """


@composite
def pad(
    x: TensorLike,
    pad_width: Widths,
    mode: str = "constant",
    constant_values: bool | int | float | complex = 0,
) -> Tensor:
    """Return x padded along each axis.

    Args:
        x: Input tensor.
        pad_width: One number, one pair (before, after) for all axes, or a pair for each axis.
        mode: "constant", "edge" (repeats the edge element), "reflect" (mirrors x without repeating
            the edge element), "symmetric" (mirrors x with it) or "wrap" (continues at the other
            end).
        constant_values: Value of the padding for "constant".
    """
    widths = _pairs(pad_width, x.ndim)
    if mode == "constant":
        _check_value(constant_values, x)
        return pad_constant(x, widths, constant_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise ArgumentError(
            f"pad: mode must be 'constant', 'edge', 'reflect', 'symmetric' or 'wrap'; got {mode!r}"
        )
    for axis, (before, after) in enumerate(widths):
        x = _extend(x, axis, before, after, mode)
    return x


def _pairs(pad_width: Widths, ndim: int) -> list[tuple[int, ...]]:
    """Return (before, after) for each axis."""
    pairs: list[tuple[int, ...]]
    if isinstance(pad_width, int):
        pairs = [(pad_width, pad_width)] * ndim
    else:
        widths: list[Any] = list(pad_width)
        if len(widths) == 1 and isinstance(widths[0], int):
            widths = widths * 2
        nested = [widths] if len(widths) == 2 and isinstance(widths[0], int) else widths
        pairs = [tuple([as_integer("pad", "pad_width", one) for one in pair]) for pair in nested]
        if any(len(pair) != 2 for pair in pairs):
            raise ArgumentError(f"pad: pad_width must be pairs (before, after); got {pad_width}")
        pairs = pairs * ndim if len(pairs) == 1 else pairs
    if len(pairs) != ndim or any(width < 0 for pair in pairs for width in pair):
        raise ArgumentError(
            f"pad: pad_width must be nonnegative pairs for {ndim} axes; got {pad_width}"
        )
    return pairs


def _check_value(value: bool | int | float | complex, x: Tensor) -> None:
    if type(value) is int or type(value) is float:
        check_number(value, x.dtype)
    if isinstance(value, complex) and not x.dtype.is_complex:
        raise ArgumentTypeError(f"pad: constant_values={value} does not fit dtype {x.dtype}")


def _slice(x: Tensor, axis: int, start: int, count: int) -> Tensor:
    return index(x, (slice(None),) * axis + (slice(start, start + count),))


def _beyond(x: Tensor, axis: int, width: int, mode: str, *, before: bool) -> list[Tensor]:
    """Return the blocks that continue x beyond one end, innermost first, mirrored or wrapped."""
    length = x.shape[axis]
    skip = 1 if mode == "reflect" and length > 1 else 0  # skip the edge element
    mirrored = mode != "wrap"
    blocks = []
    while width > 0:
        count = min(width, length - skip)
        low = skip if before == mirrored else length - skip - count
        block = _slice(x, axis, low, count)
        blocks.append(flip(block, axis=axis) if mirrored else block)
        mirrored = mode != "wrap" and not mirrored
        width -= count
    return blocks


def _edge(x: Tensor, axis: int, width: int, *, before: bool) -> list[Tensor]:
    """Return the edge element of one end, repeated."""
    end = _slice(x, axis, 0 if before else x.shape[axis] - 1, 1)
    return [broadcast_to(end, (*x.shape[:axis], width, *x.shape[axis + 1 :]))]


def _extend(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    if before == after == 0:
        return x
    if x.shape[axis] == 0:
        raise ShapeError(
            f"pad: mode={mode!r} needs elements; axis {axis} of shape {x.shape} is empty"
        )
    if mode == "edge":
        front, back = _edge(x, axis, before, before=True), _edge(x, axis, after, before=False)
    else:
        front = _beyond(x, axis, before, mode, before=True)
        back = _beyond(x, axis, after, mode, before=False)
    return concat([*front[::-1], x, *back], axis=axis)
