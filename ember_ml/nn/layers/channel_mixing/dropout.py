"""Dropout."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1
from ember_ml.nn.layers.base import Layer
from ember_ml.registry import register


@register("layers/dropout")
class Dropout(Layer):
    """Sets elements to zero at random in training, and scales the others up to make up for it.

    Args:
        rate: the share of elements that are dropped.

    Shape: any.

    Reference: Srivastava et al., "Dropout", 2014.

    Example:
        >>> nn.layers.Dropout(0.5).eval()(ops.ones(3)).tolist()
        [1.0, 1.0, 1.0]
    """

    def __init__(self, rate: Below1 = 0.5) -> None:
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """x with elements dropped; x itself outside of training."""
        return ops.dropout(x, self.rate) if self.training and self.rate else x
