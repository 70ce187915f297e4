"""Masks that remove weak connections, and the sparsity of a matrix of weights."""

from __future__ import annotations

import math
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor


class Sparsity(NamedTuple):
    """Number of connections of a matrix of weights."""

    connections: int
    """Number of weights that are not zero."""
    possible: int
    """Number of weights."""

    @property
    def fraction(self) -> float:
        """Fraction of the weights that are zero."""
        return 1.0 - self.connections / self.possible if self.possible else 0.0

    def __str__(self) -> str:
        return f"{self.connections} of {self.possible} connections ({self.fraction:.1%} sparse)"


def sparsity(weights: Tensor) -> Sparsity:
    """Return the number of connections of a matrix of weights.

    Args:
        weights: The weights.

    Example:
        >>> print(nn.space.sparsity(tensor.array([[0.0, 2.0], [-1.0, 0.0]])))
        2 of 4 connections (50.0% sparse)
    """
    return Sparsity(int(ops.count_nonzero(weights)), weights.size)


def pruning_mask(
    weights: Tensor, *, fraction: float | None = None, threshold: float | None = None
) -> Tensor:
    """Return a mask of the weights to keep: 1 for them and 0 for the others.

    Args:
        weights: The weights.
        fraction: Fraction of the weights to remove: those with the smallest absolute values,
            including weights that are already zero. Equal ones are removed in order.
        threshold: Absolute value below which weights are removed. Pass either this or `fraction`.

    Example:
        >>> nn.space.pruning_mask(tensor.array([3.0, -1.0, 2.0, 0.5]), fraction=0.5).tolist()
        [1.0, 0.0, 1.0, 0.0]
    """
    if (fraction is None) == (threshold is None):
        raise ArgumentError("pruning_mask: pass either fraction or threshold")
    magnitudes = ops.abs(weights)
    if threshold is not None:
        if not (threshold >= 0.0 and math.isfinite(threshold)):
            raise ArgumentError(
                f"pruning_mask: threshold ({threshold}) must be finite and not negative"
            )
        return ops.astype(magnitudes >= threshold, weights.dtype)
    if fraction is None or not 0.0 <= fraction <= 1.0:
        raise ArgumentError(f"pruning_mask: fraction ({fraction}) must be between 0 and 1")
    ranks = ops.argsort(ops.argsort(ops.reshape(magnitudes, (-1,))))
    kept = ranks >= round(fraction * weights.size)
    return ops.reshape(ops.astype(kept, weights.dtype), weights.shape)
