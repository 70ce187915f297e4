"""Strides, padding and lengths of windows over the spatial axes of (N, C, spatial...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.rules import REAL_FLOAT, DTypeRule
from ember_ml._core.tensor import Tensor

__all__: list[str] = []

Lengths: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "int | str | Sequence[int] | Sequence[Sequence[int]]"
Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
LONGEST = 2**31 - 1
"""Largest length of a spatial axis: native kernels count in 32-bit integers."""
CONVOLUTION = DTypeRule("floating", frozenset({"float", "complex"}), lift=True, contraction=True)


def channels_first(
    op: str, x: Tensor, rank: int, data_format: str
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the tensor as (N, C, spatial...) and its shape, with `rank` nonempty spatial axes."""
    if data_format == "channels_last" and x.ndim > 2:
        x = ops.moveaxis(x, -1, 1)
    elif data_format not in ("channels_first", "channels_last"):
        raise ArgumentError(
            f"{op}: data_format must be 'channels_first' or 'channels_last'; got {data_format!r}"
        )
    shape = x.shape
    if len(shape) != rank + 2 or not 1 <= rank <= 3:
        wanted = f"{rank + 2} axes" if 1 <= rank <= 3 else "3 to 5 axes"
        raise ShapeError(f"{op}: x has shape {shape}; expected {wanted} (batch, channels, space)")
    if 0 in shape[1:]:
        raise ShapeError(f"{op}: x has shape {shape}; only the batch axis may be empty")
    return x, shape


def floating(op: str, x: Tensor) -> Tensor:
    """Return integers as floats; complex numbers raise an error."""
    dtype = REAL_FLOAT.resolve(op, x.dtype)
    return x if x.dtype is dtype else ops.astype(x, dtype)


def restore(x: Tensor, data_format: str) -> Tensor:
    """Return (N, C, spatial...) in the requested layout."""
    return ops.moveaxis(x, 1, -1) if data_format == "channels_last" else x


def per_axis(op: str, name: str, value: Lengths, rank: int, least: int = 1) -> tuple[int, ...]:
    """Return one integer for each spatial axis."""
    if type(value) is int and least <= value <= LONGEST:
        return (value,) * rank
    values: tuple[Any, ...] = tuple(value) if isinstance(value, (list, tuple)) else (value,) * rank
    wanted = f"an integer from {least} to {LONGEST}" + (f", or {rank} of them" if rank > 1 else "")
    if not all(isinstance(length, int) for length in values):
        raise ArgumentTypeError(f"{op}: {name} must be {wanted}; got {value!r}")
    if len(values) != rank or min(values) < least or max(values) > LONGEST:
        raise ArgumentError(f"{op}: {name} must be {wanted}; got {value!r}")
    return values


def extents(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """Return the number of elements each dilated window spans."""
    if max(dilation) == 1:
        return tuple(kernel)
    return tuple([step * (taps - 1) + 1 for taps, step in zip(kernel, dilation, strict=True)])


def pairs(op: str, padding: Padding, rank: int) -> Pairs:
    """Return (before, after) for each spatial axis from an integer, one per axis, or pairs."""
    if type(padding) is int and 0 <= padding <= LONGEST:
        return ((padding, padding),) * rank
    if isinstance(padding, str):
        raise ArgumentError(f"{op}: padding must be integers; got {padding!r}")
    given: Any = padding
    if isinstance(given, (list, tuple)) and all(isinstance(pad, (list, tuple)) for pad in given):
        if len(given) != rank:
            raise ArgumentError(
                f"{op}: padding must have one pair for each of {rank} axes; got {padding!r}"
            )
        sides = [per_axis(op, "padding", pad, 2, 0) for pad in given]
        return tuple([(before, after) for before, after in sides])
    return tuple([(pad, pad) for pad in per_axis(op, "padding", given, rank, 0)])


def _same(length: int, extent: int, stride: int) -> tuple[int, int]:
    total = max((-(-length // stride) - 1) * stride + extent - length, 0)
    return total // 2, total - total // 2


def resolve_padding(
    op: str, padding: Padding, lengths: Sequence[int], spans: Sequence[int], stride: Sequence[int]
) -> Pairs:
    """Return the padding as pairs; every axis must then hold at least one window."""
    if padding == "same":
        return tuple(map(_same, lengths, spans, stride))
    if padding == "causal" and len(lengths) == 1:
        return ((spans[0] - 1, 0),)
    if isinstance(padding, str) and padding != "valid":
        raise ArgumentError(
            f"{op}: padding must be 'same', 'valid' or, in one dimension, 'causal'; got {padding!r}"
        )
    sides = pairs(op, 0 if padding == "valid" else padding, len(lengths))
    for length, (low, high), span in zip(lengths, sides, spans, strict=True):
        if low + length + high > LONGEST:
            raise ArgumentError(
                f"{op}: padding={padding} extends an axis of {length} to more than {LONGEST}"
            )
        if low + length + high < span:
            raise ShapeError(
                f"{op}: a window of {span} exceeds an axis of {length} with padding={padding}"
            )
    return sides


def check_filters(
    name: str,
    channels: int,
    filters: tuple[int, ...],
    rank: int,
    bias: Tensor | None,
    groups: int,
    transposed: bool = False,
) -> None:
    """Check that weight (of shape `filters`), bias and groups fit x."""
    if len(filters) != rank + 2 or 0 in filters:
        raise ShapeError(f"{name}: weight has shape {filters}; expected {rank + 2} nonempty axes")
    first, second, *_ = filters
    if not isinstance(groups, int) or groups < 1 or first % groups:
        raise ArgumentError(
            f"{name}: groups ({groups}) must divide the first axis of weight ({first})"
        )
    taken, returned = (first, second * groups) if transposed else (second * groups, first)
    if taken != channels:
        raise ShapeError(
            f"{name}: weight of shape {filters} with groups={groups} takes {taken} channels; "
            f"x has {channels}"
        )
    if bias is not None and bias.shape != (returned,):
        raise ShapeError(f"{name}: bias has shape {bias.shape}; expected ({returned},)")
