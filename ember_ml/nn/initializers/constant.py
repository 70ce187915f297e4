"""Deterministic initializers."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.fields import Real
from ember_ml.nn.initializers.base import Initializer, Shape
from ember_ml.ops.random import Generator
from ember_ml.registry import register


@register("initializers/zeros")
class Zeros(Initializer):
    """Initializer that fills with zeros."""

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return zeros."""
        return ops.zeros(shape, dtype=dtype)


@register("initializers/ones")
class Ones(Initializer):
    """Initializer that fills with ones."""

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return ones."""
        return ops.ones(shape, dtype=dtype)


@register("initializers/constant")
class Constant(Initializer):
    """Initializer that fills with one value.

    Args:
        value: The value. Default: 0.
    """

    def __init__(self, value: Real = 0.0) -> None:
        self.value = value

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return a tensor filled with `value`."""
        return ops.full(shape, self.value, dtype=dtype)


@register("initializers/identity", aliases=["eye"])
class Identity(Initializer):
    """Scaled identity matrix: `gain` on the main diagonal, zeros elsewhere.

    Args:
        gain: Value on the diagonal. Default: 1.
    """

    def __init__(self, gain: Real = 1.0) -> None:
        self.gain = gain

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return the scaled identity matrix."""
        if len(shape) != 2:
            raise ShapeError(f"Identity: shape must have exactly two axes, got {shape}")
        return ops.eye(*shape, dtype=dtype) * self.gain
