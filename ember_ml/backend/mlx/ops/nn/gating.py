"""Gates."""

from __future__ import annotations

import mlx.core as mx


def _halves(x: mx.array, axis: int) -> tuple[mx.array, mx.array]:
    if x.shape[axis] % 2:
        raise ValueError(f"the length of axis {axis} must be even")
    return mx.split(x, 2, axis)


def glu(x: mx.array, axis: int = -1) -> mx.array:
    first, second = _halves(x, axis)
    return first * mx.sigmoid(second)


def swiglu(x: mx.array, axis: int = -1) -> mx.array:
    first, second = _halves(x, axis)
    return first * mx.sigmoid(first) * second
