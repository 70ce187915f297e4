"""Activations with fixed or learned parameters."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import NonNegative, Positive, Real, Size
from ember_ml.nn._checks import require_at_most
from ember_ml.nn.activations import functions
from ember_ml.nn.activations.base import Activation
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("activations/gelu")
class GELU(Activation):
    """Gaussian error linear unit: x times the standard normal distribution function of x.

    Args:
        approximate: Whether to use the tanh approximation. Default: False.

    Reference: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    """

    function = staticmethod(functions.gelu)

    def __init__(self, approximate: bool = False) -> None:
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.gelu(x, self.approximate)


@register("activations/leaky_relu")
class LeakyReLU(Activation):
    """Leaky ReLU: x if x > 0, else negative_slope x.

    Args:
        negative_slope: Slope for negative inputs. Default: 0.01.
    """

    function = staticmethod(functions.leaky_relu)

    def __init__(self, negative_slope: Real = 0.01) -> None:
        self.negative_slope = negative_slope

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.leaky_relu(x, self.negative_slope)


@register("activations/prelu")
class PReLU(Activation):
    """Parametric ReLU: x if x > 0, else a learned slope times x.

    Args:
        features: Number of slopes: 1, or the length of the axis. Default: 1.
        negative_slope: Initial value of the slopes. Default: 0.25.
        axis: Axis that has one slope per element. Default: -1.

    Reference: He et al., "Delving Deep into Rectifiers", 2015.
    """

    def __init__(self, features: Size = 1, negative_slope: Real = 0.25, axis: int = -1) -> None:
        self.axis = axis
        self.weight = Parameter(ops.full(features, negative_slope), decay=False)

    @property
    def is_elementwise(self) -> bool:  # type: ignore[override]
        """Whether all features have the same slope."""
        return self.weight.size == 1

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.prelu(x, self.weight, self.axis)


@register("activations/elu")
class ELU(Activation):
    """Exponential linear unit: x if x >= 0, else alpha (exp(x) - 1).

    Args:
        alpha: Scale of the negative part. Default: 1.

    Reference: Clevert et al., "Exponential Linear Units", 2015.
    """

    function = staticmethod(functions.elu)

    def __init__(self, alpha: Real = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.elu(x, self.alpha)


@register("activations/celu")
class CELU(Activation):
    """Continuously differentiable ELU: x if x >= 0, else alpha (exp(x / alpha) - 1).

    Args:
        alpha: Scale of the negative part, above 0. Default: 1.

    Reference: Barron, "Continuously Differentiable Exponential Linear Units", 2017.
    """

    function = staticmethod(functions.celu)

    def __init__(self, alpha: Positive = 1.0) -> None:
        self.alpha = alpha

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.celu(x, self.alpha)


@register("activations/softplus")
class Softplus(Activation):
    """Softplus: log(1 + exp(beta x)) / beta, computed without overflow.

    Args:
        beta: Sharpness, above 0. Default: 1.
    """

    function = staticmethod(functions.softplus)

    def __init__(self, beta: Positive = 1.0) -> None:
        self.beta = beta

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.softplus(x, self.beta)


@register("activations/sine", aliases=["sin"])
class Sine(Activation):
    """Sine: sin(frequency x).

    Args:
        frequency: Angular frequency. Default: 1.

    Reference: Sitzmann et al., "Implicit Neural Representations with Periodic Activation
    Functions", 2020.
    """

    function = staticmethod(functions.sine)

    def __init__(self, frequency: Real = 1.0) -> None:
        self.frequency = frequency

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.sine(x, self.frequency)


@register("activations/hard_tanh", aliases=["hardtanh"])
class HardTanh(Activation):
    """Piecewise linear tanh: x clipped to [min_value, max_value].

    Args:
        min_value: Smallest output. Default: -1.
        max_value: Largest output, at least `min_value`. Default: 1.
    """

    function = staticmethod(functions.hard_tanh)

    def __init__(self, min_value: Real = -1.0, max_value: Real = 1.0) -> None:
        require_at_most(self, min_value=min_value, max_value=max_value)
        self.min_value = min_value
        self.max_value = max_value

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.hard_tanh(x, self.min_value, self.max_value)


@register("activations/hard_shrink")
class HardShrink(Activation):
    """Hard shrinkage: x if abs(x) > threshold, else 0.

    Args:
        threshold: Largest magnitude that is set to 0. Default: 0.5.
    """

    function = staticmethod(functions.hard_shrink)

    def __init__(self, threshold: NonNegative = 0.5) -> None:
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.hard_shrink(x, self.threshold)


@register("activations/soft_shrink")
class SoftShrink(Activation):
    """Soft shrinkage: sign(x) max(abs(x) - threshold, 0).

    Args:
        threshold: Amount by which magnitudes are reduced. Default: 0.5.
    """

    function = staticmethod(functions.soft_shrink)

    def __init__(self, threshold: NonNegative = 0.5) -> None:
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.soft_shrink(x, self.threshold)


@register("activations/threshold")
class Threshold(Activation):
    """Threshold: x if x > threshold, else value.

    Args:
        threshold: The threshold.
        value: Output for inputs at or below the threshold.
    """

    def __init__(self, threshold: Real, value: Real) -> None:
        self.threshold = threshold
        self.value = value

    def forward(self, x: Tensor) -> Tensor:
        """Apply the activation."""
        return functions.threshold(x, self.threshold, self.value)
