"""Softmax."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.interface import Variants


def _check_axis(x: mx.array, axis: int) -> None:
    """Raise unless the axis is one of x; MLX would also take None and tuples."""
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"axis={axis} is out of range")


def softmax(x: mx.array, axis: int = -1) -> mx.array:
    _check_axis(x, axis)
    return mx.softmax(x, axis, precise=True)


def _softmax_float32(x: mx.array, axis: int = -1) -> mx.array:
    _check_axis(x, axis)
    return mx.softmax(x, axis)


def log_softmax(x: mx.array, axis: int = -1) -> mx.array:
    _check_axis(x, axis)
    if x.size == 0:
        return x
    wide = x.astype(mx.float32)
    return (wide - mx.logsumexp(wide, axis, keepdims=True)).astype(x.dtype)


VARIANTS = Variants(by_dtype={"softmax": {"float32": _softmax_float32}})
