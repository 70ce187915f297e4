"""Initializers whose variance follows from fan-in and fan-out."""

from __future__ import annotations

import math
from typing import Literal

from ember_ml._core.tensor import DTypeLike, Tensor
from ember_ml.configs.fields import Positive
from ember_ml.nn.initializers.base import Initializer, Shape, fans
from ember_ml.ops.random import Generator
from ember_ml.registry import register


class Scaled(Initializer):
    """Base of the initializers whose variance depends on the shape.

    Subclasses implement `variance`.

    Args:
        gain: Factor of the standard deviation. Default: 1.
        distribution: "uniform" or "normal". Default: "uniform".
    """

    def __init__(
        self, gain: Positive = 1.0, distribution: Literal["uniform", "normal"] = "uniform"
    ) -> None:
        self.gain = gain
        self.distribution = distribution

    def variance(self, fan_in: int, fan_out: int) -> float:
        """Return the variance of the weights before scaling by `gain`."""
        raise NotImplementedError

    def draw(self, shape: Shape, dtype: DTypeLike, rng: Generator) -> Tensor:
        """Return samples with the variance of the shape."""
        std = self.gain * math.sqrt(self.variance(*fans(shape)))
        if self.distribution == "normal":
            return rng.normal(shape, 0.0, std, dtype=dtype)
        bound = math.sqrt(3.0) * std
        return rng.uniform(shape, -bound, bound, dtype=dtype)


@register("initializers/glorot", aliases=["xavier"])
class Glorot(Scaled):
    """Glorot (Xavier) initializer: variance 2 / (fan_in + fan_out).

    Args:
        gain: Factor of the standard deviation. Default: 1.
        distribution: "uniform" or "normal". Default: "uniform".

    Reference: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    networks", 2010.
    """

    def variance(self, fan_in: int, fan_out: int) -> float:
        """Return 2 / (fan_in + fan_out)."""
        return 2.0 / max(fan_in + fan_out, 1)


@register("initializers/he", aliases=["kaiming"])
class He(Scaled):
    """He (Kaiming) initializer for layers followed by a ReLU: variance 2 / fan_in.

    Args:
        gain: Factor of the standard deviation. Default: 1.
        distribution: "uniform" or "normal". Default: "uniform".

    Reference: He et al., "Delving Deep into Rectifiers", 2015.
    """

    def variance(self, fan_in: int, fan_out: int) -> float:
        """Return 2 / fan_in."""
        return 2.0 / max(fan_in, 1)


@register("initializers/lecun")
class Lecun(Scaled):
    """LeCun initializer: variance 1 / fan_in.

    Args:
        gain: Factor of the standard deviation. Default: 1.
        distribution: "uniform" or "normal". Default: "uniform".

    Reference: LeCun et al., "Efficient BackProp", 1998.
    """

    def variance(self, fan_in: int, fan_out: int) -> float:
        """Return 1 / fan_in."""
        return 1.0 / max(fan_in, 1)
