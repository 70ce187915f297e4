"""Initializers without chance."""

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
    """All zeros."""

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Zeros."""
        return ops.zeros(shape, dtype=dtype)


@register("initializers/ones")
class Ones(Initializer):
    """All ones."""

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Ones."""
        return ops.ones(shape, dtype=dtype)


@register("initializers/constant")
class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value: Real = 0.0) -> None:
        self.value = value

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """The value everywhere."""
        return ops.full(shape, self.value, dtype=dtype)


@register("initializers/identity", aliases=["eye"])
class Identity(Initializer):
    """The identity matrix times `gain`; of a matrix that is not square, its diagonal."""

    def __init__(self, gain: Real = 1.0) -> None:
        self.gain = gain

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """`gain` on the diagonal."""
        if len(shape) != 2:
            raise ShapeError(f"Identity makes matrices, not the shape {shape}")
        return ops.eye(*shape, dtype=dtype) * self.gain
