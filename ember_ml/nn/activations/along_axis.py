"""Activations that act along an axis."""

from __future__ import annotations

from ember_ml._core.tensor import Tensor
from ember_ml.nn.activations import functions
from ember_ml.nn.activations.base import Activation
from ember_ml.registry import register


class AlongAxis(Activation):
    """Base of the activations that combine the elements along an axis.

    Args:
        axis: Axis along which the function is applied. Default: -1.
    """

    is_elementwise = False

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation along the axis."""
        return self.function(x, self.axis)  # type: ignore[misc]


@register("activations/softmax")
class Softmax(AlongAxis):
    """Softmax: exp(x) / sum(exp(x)), computed without overflow.

    Args:
        axis: Axis along which the outputs sum to 1. Default: -1.

    Example:
        >>> nn.activations.Softmax()(ops.zeros((1, 4))).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    function = staticmethod(functions.softmax)


@register("activations/log_softmax")
class LogSoftmax(AlongAxis):
    """Logarithm of the softmax, computed without overflow or underflow.

    Args:
        axis: Axis of the softmax. Default: -1.
    """

    function = staticmethod(functions.log_softmax)


@register("activations/softmin")
class Softmin(AlongAxis):
    """Softmin: softmax(-x).

    Args:
        axis: Axis along which the outputs sum to 1. Default: -1.
    """

    function = staticmethod(functions.softmin)


@register("activations/sparsemax")
class Sparsemax(AlongAxis):
    """Sparsemax: Euclidean projection onto the probability simplex, often with exact zeros.

    Args:
        axis: Axis along which the outputs sum to 1. Default: -1.

    Reference: Martins and Astudillo, "From Softmax to Sparsemax", 2016.
    """

    function = staticmethod(functions.sparsemax)


@register("activations/glu")
class GLU(AlongAxis):
    """Gated linear unit: the first half of the axis times the sigmoid of the second half.

    The output is half as long along the axis.

    Args:
        axis: Axis to split. Its length must be even. Default: -1.

    Reference: Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.
    """

    function = staticmethod(functions.glu)
