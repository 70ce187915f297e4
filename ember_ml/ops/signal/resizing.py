"""Resizing of spatial axes: adaptive and global pooling, interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32
from ember_ml.ops.signal import _geometry as geometry
from ember_ml.ops.signal._geometry import Lengths

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool_general",
    "global_avg_pool",
    "global_max_pool",
    "interpolate",
    "interpolate_general",
]


@composite(rule=rules.REAL_FLOAT)
@in_float32
def adaptive_avg_pool_general(x: TensorLike, output_size: tuple[int, ...]) -> Tensor:
    """Compute adaptive average pooling for each spatial axis, channels first.

    Args:
        x: (batch, channels, space...).
        output_size: Number of windows on each axis; they cover it evenly.
    """
    x = geometry.floating("adaptive_avg_pool", x)
    for axis, count in enumerate(output_size, 2):
        length = x.shape[axis]
        before = (slice(None),) * axis
        parts = [
            x[(*before, slice(at * length // count, -(-(at + 1) * length // count)))]
            for at in range(count)
        ]
        x = ops.concat([ops.mean(part, axis=axis, keepdims=True) for part in parts], axis=axis)
    return x


@composite(rule=rules.REAL_FLOAT)
def adaptive_avg_pool1d(
    x: TensorLike, output_size: Lengths, data_format: str = "channels_first"
) -> Tensor:
    """Return the means of evenly spaced windows: (batch, channels, output_size).

    Args:
        x: (batch, channels, length), or (batch, length, channels) for "channels_last".
        output_size: Length of the result.
        data_format: "channels_first" or "channels_last".
    """
    x, _ = geometry.channels_first("adaptive_avg_pool1d", x, 1, data_format)
    size = geometry.per_axis("adaptive_avg_pool1d", "output_size", output_size, 1)
    return geometry.restore(adaptive_avg_pool_general(x, size), data_format)


@composite(rule=rules.REAL_FLOAT)
def adaptive_avg_pool2d(
    x: TensorLike, output_size: Lengths, data_format: str = "channels_first"
) -> Tensor:
    """Return the means of evenly spaced windows: (batch, channels, *output_size).

    Args:
        x: (batch, channels, height, width), or (batch, height, width, channels) for
            "channels_last".
        output_size: Height and width of the result; one integer sets both.
        data_format: "channels_first" or "channels_last".
    """
    x, _ = geometry.channels_first("adaptive_avg_pool2d", x, 2, data_format)
    size = geometry.per_axis("adaptive_avg_pool2d", "output_size", output_size, 2)
    return geometry.restore(adaptive_avg_pool_general(x, size), data_format)


def _space(name: str, x: Tensor, data_format: str) -> tuple[int, ...]:
    geometry.channels_first(name, x, x.ndim - 2, data_format)
    first = 1 if data_format == "channels_last" else 2
    return tuple(range(first, first + x.ndim - 2))


@composite(rule=rules.REAL_FLOAT)
def global_avg_pool(
    x: TensorLike, keepdims: bool = False, data_format: str = "channels_first"
) -> Tensor:
    """Return the mean of each channel over all spatial axes: (batch, channels).

    Args:
        x: (batch, channels, space...), or (batch, space..., channels) for "channels_last".
        keepdims: Whether to keep the spatial axes with length 1.
        data_format: "channels_first" or "channels_last".
    """
    return ops.mean(x, axis=_space("global_avg_pool", x, data_format), keepdims=keepdims)


@composite(rule=rules.REAL_FLOAT)
def global_max_pool(
    x: TensorLike, keepdims: bool = False, data_format: str = "channels_first"
) -> Tensor:
    """Return the maximum of each channel over all spatial axes: (batch, channels).

    Args:
        x: (batch, channels, space...), or (batch, space..., channels) for "channels_last".
        keepdims: Whether to keep the spatial axes with length 1.
        data_format: "channels_first" or "channels_last".
    """
    x = geometry.floating("global_max_pool", x)
    return ops.max(x, axis=_space("global_max_pool", x, data_format), keepdims=keepdims)


def _nearest(length: int, count: int, scale: float | None) -> list[int]:
    """Return the source position of each of `count` elements."""
    if scale is None:
        return [at * length // count for at in range(count)]
    return [min(int(at / scale), length - 1) for at in range(count)]


def _positions(length: int, count: int, scale: float | None, align_corners: bool) -> list[float]:
    """Return the fractional source position of each of `count` elements."""
    if align_corners:
        return [at * (length - 1) / max(count - 1, 1) for at in range(count)]
    step = length / count if scale is None else 1 / scale
    return [min(max((at + 0.5) * step - 0.5, 0.0), length - 1.0) for at in range(count)]


@composite(rule=rules.REAL_FLOAT)
@in_float32
def interpolate_general(
    x: TensorLike,
    size: tuple[int, ...],
    scale: tuple[float, ...] | None,
    mode: str,
    align_corners: bool,
) -> Tensor:
    """Compute `interpolate` with all arguments given for each spatial axis, channels first.

    Args:
        x: (batch, channels, space...).
        size: Lengths of the result.
        scale: Factors of the lengths, or None to derive them from `size`.
        mode: "nearest" or "linear".
        align_corners: Whether the first and last elements keep their values in "linear".
    """
    x = geometry.floating("interpolate", x)
    for axis, count in enumerate(size, 2):
        length, factor = x.shape[axis], None if scale is None else scale[axis - 2]
        if mode == "nearest":
            x = ops.take(x, _nearest(length, count, factor), axis=axis)
            continue
        places = _positions(length, count, factor, align_corners)
        lows = [int(place) for place in places]
        shape = (count, *[1] * (x.ndim - 1 - axis))
        part = convert_to_tensor(
            [p - n for p, n in zip(places, lows, strict=True)], x.dtype, backend=x.backend
        )
        low = ops.take(x, lows, axis=axis)
        high = ops.take(x, [min(n + 1, length - 1) for n in lows], axis=axis)
        x = ops.add(low, ops.multiply(ops.subtract(high, low), ops.reshape(part, shape)))
    return x


def _factors(scale_factor: float | Sequence[float], rank: int) -> tuple[float, ...]:
    factors = scale_factor if isinstance(scale_factor, Sequence) else [scale_factor] * rank
    if len(factors) != rank or min(factors) <= 0:
        raise ArgumentError(
            f"interpolate: scale_factor must be {rank} positive numbers; got {scale_factor}"
        )
    return tuple(map(float, factors))


@composite(rule=rules.REAL_FLOAT)
def interpolate(
    x: TensorLike,
    size: Lengths | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    data_format: str = "channels_first",
) -> Tensor:
    """Return x with its spatial axes resized.

    Args:
        x: (batch, channels, space...), or (batch, space..., channels) for "channels_last".
        size: New lengths; one integer, or one per spatial axis.
        scale_factor: Factor of the lengths, instead of `size`; one number, or one per spatial axis.
        mode: "nearest", or "linear" along each axis (bilinear in two dimensions).
        align_corners: Whether the first and last elements keep their values in "linear".
        data_format: "channels_first" or "channels_last".
    """
    rank = x.ndim - 2
    x, shape = geometry.channels_first("interpolate", x, rank, data_format)
    if (size is None) == (scale_factor is None) or mode not in ("nearest", "linear"):
        raise ArgumentError(
            f"interpolate: got size={size}, scale_factor={scale_factor}, mode={mode!r}; "
            "expected either size or scale_factor, and mode 'nearest' or 'linear'"
        )
    scale = None
    if scale_factor is not None:
        scale = _factors(scale_factor, rank)
        size = [math.floor(n * factor) for n, factor in zip(shape[2:], scale, strict=True)]
    lengths = geometry.per_axis("interpolate", "size", size or 0, rank)
    return geometry.restore(
        interpolate_general(x, lengths, scale, mode, align_corners), data_format
    )
