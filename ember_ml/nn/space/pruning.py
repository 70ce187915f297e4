"""Masks that remove weak connections, and the sparsity of a matrix of weights."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml import ops
from ember_ml._core import numbers
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike


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


def sparsity(weights: TensorLike) -> Sparsity:
    """Return the number of connections of a matrix of weights.

    Args:
        weights: The weights.

    Example:
        >>> print(nn.space.sparsity(tensor.array([[0.0, 2.0], [-1.0, 0.0]])))
        2 of 4 connections (50.0% sparse)
    """
    weights = convert_to_tensor(weights)
    return Sparsity(int(ops.count_nonzero(weights)), weights.size)


def pruning_mask(
    weights: TensorLike, *, fraction: float | None = None, threshold: float | None = None
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
    weights = convert_to_tensor(weights)
    magnitudes = ops.abs(weights)
    if threshold is not None:
        smallest = numbers.not_negative("pruning_mask", "threshold", threshold)
        return ops.astype(magnitudes >= smallest, weights.dtype)
    share = numbers.fraction("pruning_mask", "fraction", fraction)
    ranks = ops.argsort(ops.argsort(ops.reshape(magnitudes, (-1,))))
    kept = ranks >= round(share * weights.size)
    return ops.reshape(ops.astype(kept, weights.dtype), weights.shape)
