"""Strides, pads and lengths of windows that slide over the spatial axes of (N, C, spatial...)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.rules import Rule
from ember_ml._core.tensor import Tensor
from ember_ml.ops.manipulation import moveaxis

Lengths: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "int | str | Sequence[int] | Sequence[Sequence[int]]"
Pairs: TypeAlias = "tuple[tuple[int, int], ...]"
CONVOLUTION = Rule("floating", frozenset({"float", "complex"}), lift=True, contraction=True)


def channels_first(op: str, x: Tensor, rank: int, data_format: str) -> Tensor:
    """The tensor as (N, C, spatial...), checked to have `rank` spatial axes of at least one element."""
    if data_format not in ("channels_first", "channels_last"):
        raise ArgumentError(
            f"{op}: data_format={data_format!r} is neither 'channels_first' nor 'channels_last'"
        )
    if x.ndim != rank + 2 or not 1 <= rank <= 3:
        wanted = f"{rank + 2} axes" if 1 <= rank <= 3 else "3 to 5 axes"
        raise ShapeError(f"{op}: x must have {wanted} (batch, channels, space); got {x.shape}")
    x = moveaxis(x, -1, 1) if data_format == "channels_last" else x
    if 0 in x.shape[1:]:
        raise ShapeError(f"{op}: only the batch axis of x may be empty; the shape is {x.shape}")
    return x


def restore(x: Tensor, data_format: str) -> Tensor:
    """(N, C, spatial...) in the layout asked for."""
    return moveaxis(x, 1, -1) if data_format == "channels_last" else x


def per_axis(op: str, name: str, value: Lengths, rank: int, least: int = 1) -> tuple[int, ...]:
    """One integer for each spatial axis."""
    values = (value,) * rank if isinstance(value, int) else tuple(value)
    if not all(isinstance(length, int) for length in values):
        raise ArgumentTypeError(f"{op}: {name}={value!r} must be an integer or {rank} of them")
    if len(values) != rank or min(values) < least:
        raise ArgumentError(f"{op}: {name}={value!r} must be one or {rank} integers from {least} up")
    return values


def extents(kernel: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """How many elements each dilated window spans."""
    return tuple([step * (taps - 1) + 1 for taps, step in zip(kernel, dilation, strict=True)])


def pairs(op: str, padding: Padding, rank: int) -> Pairs:
    """(before, after) for each spatial axis, from one integer, one for each axis, or the pairs."""
    if isinstance(padding, str):
        raise ArgumentError(f"{op}: padding={padding!r} is not known here; give integers")
    if not isinstance(padding, int) and all(isinstance(pad, Sequence) for pad in padding):
        flat = [pad for pair in padding for pad in pair]  # type: ignore[union-attr]
        lows = per_axis(op, "padding", flat[0::2], rank, 0)
        return tuple(zip(lows, per_axis(op, "padding", flat[1::2], rank, 0), strict=True))
    return tuple([(pad, pad) for pad in per_axis(op, "padding", padding, rank, 0)])  # type: ignore[arg-type]


def _same(length: int, extent: int, stride: int) -> tuple[int, int]:
    total = max((-(-length // stride) - 1) * stride + extent - length, 0)
    return total // 2, total - total // 2


def resolve_padding(
    op: str, padding: Padding, lengths: Sequence[int], spans: Sequence[int], stride: Sequence[int]
) -> Pairs:
    """The padding as pairs; every axis must then hold at least one window."""
    if padding == "same":
        return tuple(map(_same, lengths, spans, stride))
    if padding == "causal" and len(lengths) == 1:
        return ((spans[0] - 1, 0),)
    if isinstance(padding, str) and padding != "valid":
        raise ArgumentError(
            f"{op}: padding={padding!r}; there are 'same', 'valid' and, in one dimension, 'causal'"
        )
    found = pairs(op, 0 if padding == "valid" else padding, len(lengths))
    for length, (low, high), span in zip(lengths, found, spans, strict=True):
        if low + length + high < span:
            raise ShapeError(
                f"{op}: a window of {span} is longer than the axis of {length} with padding {padding}"
            )
    return found


def check_filters(
    name: str,
    shape: tuple[int, ...],
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    transposed: bool = False,
) -> None:
    """Whether weight, bias and groups fit; `shape` is that of the channels-first x."""
    if weight.ndim != len(shape) or 0 in weight.shape:
        raise ShapeError(f"{name}: weight of shape {weight.shape} does not fit x of shape {shape}")
    if not isinstance(groups, int) or groups < 1 or weight.shape[0] % groups:
        raise ArgumentError(f"{name}: groups={groups} must divide {weight.shape[0]}, weight's first axis")
    taken = weight.shape[0] if transposed else weight.shape[1] * groups
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if taken != shape[1]:
        raise ShapeError(
            f"{name}: weight of shape {weight.shape} with groups={groups} takes {taken} channels; "
            f"x has {shape[1]}"
        )
    if bias is not None and bias.shape != (made,):
        raise ShapeError(f"{name}: bias must have the shape ({made},), not {bias.shape}")
