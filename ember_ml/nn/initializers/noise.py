"""Initializers of one distribution, whatever the shape."""

from __future__ import annotations

from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.fields import NonNegative, Positive, Real
from ember_ml.nn.initializers.base import Initializer, Shape
from ember_ml.ops.random import Generator
from ember_ml.registry import register


@register("initializers/uniform")
class Uniform(Initializer):
    """Uniform from `low` up to `high`."""

    def __init__(self, low: Real = -0.05, high: Real = 0.05) -> None:
        if low > high:
            raise ArgumentError(f"Uniform: low={low} must not be above high={high}")
        self.low = low
        self.high = high

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Uniform numbers."""
        return rng.uniform(shape, self.low, self.high, dtype=dtype)


@register("initializers/normal")
class Normal(Initializer):
    """Normally distributed."""

    def __init__(self, mean: Real = 0.0, std: NonNegative = 0.02) -> None:
        self.mean = mean
        self.std = std

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Normal numbers."""
        return rng.normal(shape, self.mean, self.std, dtype=dtype)


@register("initializers/truncated_normal")
class TruncatedNormal(Initializer):
    """Normally distributed, but drawn again beyond `bound` standard deviations."""

    def __init__(self, mean: Real = 0.0, std: NonNegative = 0.02, bound: Positive = 2.0) -> None:
        self.mean = mean
        self.std = std
        self.bound = bound

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Normal numbers within the bounds."""
        return rng.truncated_normal(
            shape, self.mean, self.std, -self.bound, self.bound, dtype=dtype
        )
