"""Initializers of matrices as a whole."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.fields import NonNegative, Positive, Probability
from ember_ml.nn.initializers.base import Initializer, Shape, as_matrix
from ember_ml.ops.random import Generator
from ember_ml.registry import register


@register("initializers/orthogonal")
class Orthogonal(Initializer):
    """Orthogonal rows (or columns, if these are fewer) of length `gain`.

    Reference: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks", 2013.
    """

    def __init__(self, gain: Positive = 1.0) -> None:
        self.gain = gain

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """The matrix, in the shape asked for."""
        matrix = rng.orthogonal(as_matrix("Orthogonal", shape), self.gain, dtype=dtype)
        return ops.reshape(matrix, shape)


@register("initializers/sparse")
class Sparse(Initializer):
    """Normal numbers, a share of which in each column is zero.

    Reference: Martens, "Deep learning via Hessian-free optimization", 2010.
    """

    def __init__(self, sparsity: Probability = 0.9, std: NonNegative = 0.01) -> None:
        self.sparsity = sparsity
        self.std = std

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """The matrix, in the shape asked for."""
        rows, columns = as_matrix("Sparse", shape)
        values = rng.normal((rows, columns), 0.0, self.std, dtype=dtype)
        zeros = math.ceil(self.sparsity * rows)
        order = ops.argsort(rng.uniform((rows, columns)), axis=0)
        ranks = ops.argsort(order, axis=0)
        return ops.reshape(ops.where(ranks >= zeros, values, 0.0), shape)
