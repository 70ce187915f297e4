"""Normalization over trailing axes."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml._core.errors import AxisError, ShapeError


def _rows(x: mx.array, axis: int, *weights: Any) -> list[Any]:
    """Return x and the weights with the normalized axes merged into one."""
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(f"axis={axis} is out of range for the shape {x.shape}")
    normalized = x.shape[axis % x.ndim :]
    for weight in weights:
        if weight is not None and weight.shape != normalized:
            raise ShapeError(
                f"the weight has shape {weight.shape}; expected {normalized}, the normalized axes"
            )
    if len(normalized) == 1:
        return [x, *weights]
    folded = x.reshape(*x.shape[: axis % x.ndim], math.prod(normalized))
    return [folded, *(weight if weight is None else weight.reshape(-1) for weight in weights)]


def layer_norm(
    x: mx.array,
    weight: mx.array | None = None,
    bias: mx.array | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> mx.array:
    rows, weight, bias = _rows(x, axis, weight, bias)
    out = mx.fast.layer_norm(rows, weight, bias, eps)
    return out if rows is x else out.reshape(x.shape)


def rms_norm(
    x: mx.array, weight: mx.array | None = None, eps: float = 1e-6, axis: int = -1
) -> mx.array:
    rows, weight = _rows(x, axis, weight)
    out = mx.fast.rms_norm(rows, weight, eps)
    return out if rows is x else out.reshape(x.shape)
