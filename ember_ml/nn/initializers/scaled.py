"""Initializers that keep the size of signals from layer to layer."""

from __future__ import annotations

import math
from typing import Literal

from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.fields import Positive
from ember_ml.nn.initializers.base import Initializer, Shape, fans
from ember_ml.ops.random import Generator
from ember_ml.registry import register


class Scaled(Initializer):
    """A variance that follows from the shape.

    Args:
        gain: a factor on the standard deviation.
        distribution: "uniform" or "normal".
    """

    def __init__(
        self, gain: Positive = 1.0, distribution: Literal["uniform", "normal"] = "uniform"
    ) -> None:
        self.gain = gain
        self.distribution = distribution

    def variance(self, fan_in: int, fan_out: int) -> float:
        """Of a unit with so many inputs, each of which feeds so many units."""
        raise NotImplementedError

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Numbers of that variance."""
        std = self.gain * math.sqrt(self.variance(*fans(shape)))
        if self.distribution == "normal":
            return rng.normal(shape, 0.0, std, dtype=dtype)
        bound = math.sqrt(3.0) * std
        return rng.uniform(shape, -bound, bound, dtype=dtype)


@register("initializers/glorot", aliases=["xavier"])
class Glorot(Scaled):
    """Variance 2 / (fan in + fan out).

    Reference: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", 2010.
    """

    def variance(self, fan_in: int, fan_out: int) -> float:
        """2 / (fan in + fan out)."""
        return 2.0 / max(fan_in + fan_out, 1)


@register("initializers/he", aliases=["kaiming"])
class He(Scaled):
    """Variance 2 / fan in, for layers before a ReLU.

    Reference: He et al., "Delving Deep into Rectifiers", 2015.
    """

    def variance(self, fan_in: int, fan_out: int) -> float:
        """2 / fan in."""
        return 2.0 / max(fan_in, 1)


@register("initializers/lecun")
class Lecun(Scaled):
    """Variance 1 / fan in.

    Reference: LeCun et al., "Efficient BackProp", 1998.
    """

    def variance(self, fan_in: int, fan_out: int) -> float:
        """1 / fan in."""
        return 1.0 / max(fan_in, 1)
