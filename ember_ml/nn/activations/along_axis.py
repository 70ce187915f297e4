"""Activations along an axis."""

from __future__ import annotations

from ember_ml._core.tensor import Tensor
from ember_ml.nn.activations import functions
from ember_ml.nn.activations.base import Activation
from ember_ml.registry import register


class AlongAxis(Activation):
    """A function of the elements along an axis.

    Args:
        axis: the axis.
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """The function of x along the axis."""
        return self.function(x, self.axis)  # type: ignore[misc]


@register("activations/softmax")
class Softmax(AlongAxis):
    """exp(x) / sum(exp(x)), without overflow.

    Example:
        >>> nn.activations.Softmax()(ops.zeros((1, 4))).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    function = staticmethod(functions.softmax)


@register("activations/log_softmax")
class LogSoftmax(AlongAxis):
    """log(softmax(x)), without overflow or underflow."""

    function = staticmethod(functions.log_softmax)


@register("activations/softmin")
class Softmin(AlongAxis):
    """softmax(-x)."""

    function = staticmethod(functions.softmin)


@register("activations/sparsemax")
class Sparsemax(AlongAxis):
    """The point of the probability simplex nearest to x, often with zeros.

    Reference: Martins and Astudillo, "From Softmax to Sparsemax", 2016.
    """

    function = staticmethod(functions.sparsemax)


@register("activations/glu")
class GLU(AlongAxis):
    """The first half of the axis times the sigmoid of the second, which halves its length.

    Reference: Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.
    """

    function = staticmethod(functions.glu)
