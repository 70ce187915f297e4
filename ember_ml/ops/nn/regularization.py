"""Regularization noise for training."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.random import Generator
from ember_ml.ops.random._draw import draw

__all__ = ["dropout"]


@composite(rule=rules.FLOAT)
def dropout(
    x: TensorLike, rate: float = 0.5, training: bool = True, *, seed: int | Generator | None = None
) -> Tensor:
    """Return x with random elements set to 0 and the others divided by 1 - rate.

    Args:
        x: Input tensor.
        rate: Probability of zeroing an element, in [0, 1].
        training: Whether to apply dropout; else x is returned unchanged.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    if not 0 <= rate <= 1:
        raise ArgumentError(f"dropout: rate must be in [0, 1]; got {rate}")
    if not training or rate == 0:
        return x
    if rate == 1:
        return ops.where(ops.zeros_like(x, dtype="bool"), x, 0.0)
    mask = draw("uniform", x.shape, 0.0, 1.0, like=x, dtype="float32", seed=seed) >= rate
    return ops.where(mask, x / (1.0 - rate), 0.0)
