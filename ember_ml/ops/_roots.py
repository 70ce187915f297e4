"""Roots that a gradient passes at zero, where their slope is infinite."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor

__all__: list[str] = []


def root(x: Tensor, p: float = 2.0) -> Tensor:
    """The p-th root of numbers that are not negative; at zero the gradient is zero."""
    zero = ops.equal(x, 0)
    safe = ops.where(zero, 1, x)
    return ops.where(zero, 0, ops.sqrt(safe) if p == 2 else ops.pow(safe, 1.0 / p))
