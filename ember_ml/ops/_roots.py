"""Roots with zero gradient at zero."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor

__all__: list[str] = []


def root(x: Tensor, p: float = 2.0) -> Tensor:
    """Return the p-th root of nonnegative numbers; at zero the gradient is zero."""
    above = ops.greater(x, 0)
    safe = ops.where(above, x, 1)
    return ops.where(
        above, ops.sqrt(safe) if p == 2 else ops.pow(safe, 1.0 / p), ops.stop_gradient(x)
    )
