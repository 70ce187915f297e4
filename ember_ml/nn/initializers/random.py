"""Random initializers whose scale does not depend on the shape."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.fields import NonNegative, Positive, Probability, Real
from ember_ml.nn._checks import require_at_most
from ember_ml.nn.initializers.base import Initializer, Shape, as_matrix
from ember_ml.ops.random import Generator
from ember_ml.registry import register


@register("initializers/uniform")
class Uniform(Initializer):
    """Uniform distribution over [low, high).

    Args:
        low: Lower bound. Default: -0.05.
        high: Upper bound, at least `low`. Default: 0.05.
    """

    def __init__(self, low: Real = -0.05, high: Real = 0.05) -> None:
        require_at_most(self, low=low, high=high)
        self.low = low
        self.high = high

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return uniform samples."""
        return rng.uniform(shape, self.low, self.high, dtype=dtype)


@register("initializers/normal")
class Normal(Initializer):
    """Normal distribution.

    Args:
        mean: Mean. Default: 0.
        std: Standard deviation. Default: 0.02.
    """

    def __init__(self, mean: Real = 0.0, std: NonNegative = 0.02) -> None:
        self.mean = mean
        self.std = std

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return normal samples."""
        return rng.normal(shape, self.mean, self.std, dtype=dtype)


@register("initializers/truncated_normal")
class TruncatedNormal(Initializer):
    """Normal distribution truncated at `bound` standard deviations from the mean.

    Args:
        mean: Mean before truncation. Default: 0.
        std: Standard deviation before truncation. Default: 0.02.
        bound: Largest distance from the mean, in standard deviations. Default: 2.
    """

    def __init__(self, mean: Real = 0.0, std: NonNegative = 0.02, bound: Positive = 2.0) -> None:
        self.mean = mean
        self.std = std
        self.bound = bound

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return samples of the truncated normal distribution."""
        return rng.truncated_normal(
            shape, self.mean, self.std, -self.bound, self.bound, dtype=dtype
        )


@register("initializers/orthogonal")
class Orthogonal(Initializer):
    """Random matrix with orthogonal rows, or orthogonal columns if there are more rows.

    Weights with more than two axes are treated as a matrix (out, all other axes).

    Args:
        gain: Norm of the rows or columns. Default: 1.

    Reference: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks", 2013.
    """

    def __init__(self, gain: Positive = 1.0) -> None:
        self.gain = gain

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return an orthogonal matrix, reshaped to `shape`."""
        matrix = rng.orthogonal(as_matrix("Orthogonal", shape), self.gain, dtype=dtype)
        return ops.reshape(matrix, shape)


@register("initializers/sparse")
class Sparse(Initializer):
    """Normal distribution with a fixed fraction of zeros in each column.

    Args:
        sparsity: Fraction of each column that is zero. Default: 0.9.
        std: Standard deviation of the other elements. Default: 0.01.

    Reference: Martens, "Deep learning via Hessian-free optimization", 2010.
    """

    def __init__(self, sparsity: Probability = 0.9, std: NonNegative = 0.01) -> None:
        self.sparsity = sparsity
        self.std = std

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return a sparse matrix, reshaped to `shape`."""
        rows, columns = as_matrix("Sparse", shape)
        values = rng.normal((rows, columns), 0.0, self.std, dtype=dtype)
        num_zeros = math.ceil(self.sparsity * rows)
        order = ops.argsort(rng.uniform((rows, columns)), axis=0)
        ranks = ops.argsort(order, axis=0)
        return ops.reshape(ops.where(ranks >= num_zeros, values, 0.0), shape)
