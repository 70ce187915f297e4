"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx


def rope(
    x: mx.array,
    positions: mx.array | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> mx.array:
    if not base > 0 or isinstance(offset, float):
        raise ValueError("base must be positive and offset an integer")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"the shape {x.shape} is not (..., time, even features)")
    pairs = x.shape[-1] // 2
    if frequencies is not None and len(frequencies) != pairs:
        raise ValueError(f"got {len(frequencies)} frequencies for {pairs} pairs of features")
    if positions is None and x.size:
        # MLX takes the periods of the angles
        periods = None if frequencies is None else 1.0 / mx.array(list(frequencies), mx.float32)
        stacked = x.reshape(-1, *x.shape[-2:])[:, None]
        options: dict[str, Any] = {
            "traditional": interleaved,
            "base": base if periods is None else None,
            "scale": 1.0,
            "offset": offset,
            "freqs": periods,
        }
        return mx.fast.rope(stacked, x.shape[-1], **options).reshape(x.shape)
    if positions is None:
        positions = mx.arange(x.shape[-2])
    speeds = (
        mx.power(base, mx.arange(pairs, dtype=mx.float32) / -pairs)
        if frequencies is None
        else mx.array(list(frequencies), dtype=mx.float32)
    )
    return _turn(x, positions + offset, speeds, interleaved) if x.size else x


def _turn(x: mx.array, positions: mx.array, speeds: mx.array, interleaved: bool) -> mx.array:
    angles = positions.astype(mx.float32)[..., None] * speeds
    cos, sin = mx.cos(angles), mx.sin(angles)
    wide = x.astype(mx.float32)
    first, second = (wide[..., 0::2], wide[..., 1::2]) if interleaved else mx.split(wide, 2, -1)
    turned = [first * cos - second * sin, first * sin + second * cos]
    joined = mx.stack(turned, -1) if interleaved else mx.concatenate(turned, -1)
    return joined.reshape(x.shape).astype(x.dtype)
