"""Dropout."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1
from ember_ml.nn.layers.base import Layer
from ember_ml.registry import register


@register("layers/dropout")
class Dropout(Layer):
    """Dropout: zeroes random elements during training and scales the others by 1 / (1 - rate).

    In inference mode it returns its input.

    Args:
        rate: Probability of zeroing an element, 0 <= rate < 1. Default: 0.5.

    Shape: any.

    Reference: Srivastava et al., "Dropout", 2014.

    Example:
        >>> nn.layers.Dropout(0.5).eval()(ops.ones(3)).tolist()
        [1.0, 1.0, 1.0]
    """

    def __init__(self, rate: Below1 = 0.5) -> None:
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout in training mode."""
        return ops.dropout(x, self.rate) if self.training and self.rate else x
