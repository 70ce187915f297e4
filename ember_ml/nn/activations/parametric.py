"""Activations with parameters, given or learned."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import NonNegative, Positive, Real, Size
from ember_ml.nn.activations import functions
from ember_ml.nn.activations.base import Activation
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("activations/gelu")
class GELU(Activation):
    """x times the normal distribution function of x.

    Args:
        approximate: whether to use the form with tanh.

    Reference: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """

    function = staticmethod(functions.gelu)

    def __init__(self, approximate: bool = False) -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.gelu(x, self.approximate)


@register("activations/leaky_relu")
class LeakyReLU(Activation):
    """x where it is positive, else negative_slope x."""

    function = staticmethod(functions.leaky_relu)

    def __init__(self, negative_slope: Real = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.leaky_relu(x, self.negative_slope)


@register("activations/prelu")
class PReLU(Activation):
    """x where it is positive, else a learned slope times x.

    Args:
        features: the number of slopes: 1, or the length of the axis.
        negative_slope: the first value of the slopes.
        axis: the axis of the slopes.

    Reference: He et al., "Delving Deep into Rectifiers", 2015.
    """

    def __init__(self, features: Size = 1, negative_slope: Real = 0.25, axis: int = -1) -> None:
        self.axis = axis
        self.weight = Parameter(ops.full(features, negative_slope), decay=False)

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.prelu(x, self.weight, self.axis)


@register("activations/elu")
class ELU(Activation):
    """x where it is not negative, else alpha (exp(x) - 1).

    Reference: Clevert et al., "Exponential Linear Units", 2015.
    """

    function = staticmethod(functions.elu)

    def __init__(self, alpha: Real = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.elu(x, self.alpha)


@register("activations/celu")
class CELU(Activation):
    """x where it is not negative, else alpha (exp(x / alpha) - 1).

    Reference: Barron, "Continuously Differentiable Exponential Linear Units", 2017.
    """

    function = staticmethod(functions.celu)

    def __init__(self, alpha: Positive = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.celu(x, self.alpha)


@register("activations/softplus")
class Softplus(Activation):
    """log(1 + exp(beta x)) / beta, without overflow."""

    function = staticmethod(functions.softplus)

    def __init__(self, beta: Positive = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.softplus(x, self.beta)


@register("activations/sine", aliases=["sin"])
class Sine(Activation):
    """sin(frequency x).

    Reference: Sitzmann et al., "Implicit Neural Representations with Periodic Activation
    Functions", 2020.
    """

    function = staticmethod(functions.sine)

    def __init__(self, frequency: Real = 1.0) -> None:
        self.frequency = frequency

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.sine(x, self.frequency)


@register("activations/hard_tanh", aliases=["hardtanh"])
class HardTanh(Activation):
    """x, kept between min_value and max_value."""

    function = staticmethod(functions.hard_tanh)

    def __init__(self, min_value: Real = -1.0, max_value: Real = 1.0) -> None:
        if min_value > max_value:
            raise ArgumentError(
                f"HardTanh: min_value={min_value} must not be above max_value={max_value}"
            )
        self.min_value = min_value
        self.max_value = max_value

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.hard_tanh(x, self.min_value, self.max_value)


@register("activations/hard_shrink")
class HardShrink(Activation):
    """x where abs(x) is above the threshold, else 0."""

    function = staticmethod(functions.hard_shrink)

    def __init__(self, threshold: NonNegative = 0.5) -> None:
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.hard_shrink(x, self.threshold)


@register("activations/soft_shrink")
class SoftShrink(Activation):
    """x moved towards 0 by the threshold, and 0 where that would cross it."""

    function = staticmethod(functions.soft_shrink)

    def __init__(self, threshold: NonNegative = 0.5) -> None:
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.soft_shrink(x, self.threshold)


@register("activations/threshold")
class Threshold(Activation):
    """x where it is above the threshold, else value."""

    def __init__(self, threshold: Real, value: Real) -> None:
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """The function of x."""
        return functions.threshold(x, self.threshold, self.value)
