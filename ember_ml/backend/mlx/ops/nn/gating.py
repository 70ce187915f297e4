"""Gates."""

from __future__ import annotations

from typing import Any

import mlx.core as mx


def _halves(x: Any, axis: int) -> Any:
    if x.shape[axis] % 2:
        raise ValueError(f"the length of axis {axis} must be even")
    return mx.split(x, 2, axis)


def glu(x: Any, axis: int = -1) -> Any:
    first, second = _halves(x, axis)
    return first * mx.sigmoid(second)


def swiglu(x: Any, axis: int = -1) -> Any:
    first, second = _halves(x, axis)
    return first * mx.sigmoid(first) * second
