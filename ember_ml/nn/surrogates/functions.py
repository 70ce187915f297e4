"""The surrogate gradients that `ops.spiking_scan` implements."""

from __future__ import annotations

from typing import ClassVar

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.backend import spiking
from ember_ml.configs.fields import Positive
from ember_ml.nn.surrogates.base import Surrogate
from ember_ml.registry import register


class _Kernel(Surrogate):
    """Surrogate with a kernel in `ops.spiking_scan`."""

    kernel: ClassVar[str]

    def smooth(self, u: Tensor) -> Tensor:
        """Return the smooth function; see `Surrogate.smooth`."""
        y: Tensor = spiking.smooth_of(ops, u, self.kernel, self.slope)
        return y


@register("surrogates/fast_sigmoid", aliases=["superspike"])
class FastSigmoid(_Kernel):
    r"""Derivative of the fast sigmoid, of SuperSpike.

    .. math:: g(u) = \frac{1}{(1 + k |u|)^2}

    Args:
        slope: Steepness k: the larger, the closer to the threshold a voltage must be to learn.
            Default: 25.

    Reference: Zenke and Ganguli, "SuperSpike: Supervised Learning in Multilayer Spiking Neural
    Networks", 2018.

    Example:
        >>> x = nn.Parameter([-0.1, 0.1])
        >>> with GradientTape() as tape:
        ...     spikes = nn.surrogates.FastSigmoid(10.0)(x)
        >>> spikes.tolist(), tape.gradient(spikes, x).tolist()
        ([0.0, 1.0], [0.25, 0.25])
    """

    kernel = "fast_sigmoid"

    def __init__(self, slope: Positive = 25.0) -> None:
        self.slope = slope


@register("surrogates/atan", aliases=["arctan"])
class Atan(_Kernel):
    r"""Derivative of a scaled arc tangent.

    .. math:: g(u) = \frac{k / 2}{1 + (\pi k u / 2)^2}

    Args:
        slope: Steepness k. Default: 2.

    Reference: Fang et al., "Incorporating Learnable Membrane Time Constant to Enhance Learning of
    Spiking Neural Networks", 2021.

    Example:
        >>> nn.surrogates.Atan()(ops.ones((2,))).tolist()
        [1.0, 1.0]
    """

    kernel = "atan"

    def __init__(self, slope: Positive = 2.0) -> None:
        self.slope = slope


@register("surrogates/sigmoid")
class Sigmoid(_Kernel):
    r"""Derivative of the logistic sigmoid.

    .. math:: g(u) = k \, \sigma(k u) (1 - \sigma(k u))

    Args:
        slope: Steepness k. Default: 25.

    Example:
        >>> nn.surrogates.Sigmoid()(ops.zeros((2,))).tolist()
        [0.0, 0.0]
    """

    kernel = "sigmoid"

    def __init__(self, slope: Positive = 25.0) -> None:
        self.slope = slope


@register("surrogates/triangle", aliases=["piecewise_linear"])
class Triangle(_Kernel):
    r"""Triangle around the threshold.

    .. math:: g(u) = k \max(0, 1 - |u|)

    Args:
        slope: Height k. Default: 1.

    Reference: Bellec et al., "Long short-term memory and Learning-to-learn in networks of spiking
    neurons", 2018.

    Example:
        >>> nn.surrogates.Triangle(0.3)(ops.ones((2,))).tolist()
        [1.0, 1.0]
    """

    kernel = "triangle"

    def __init__(self, slope: Positive = 1.0) -> None:
        self.slope = slope


@register("surrogates/straight_through", aliases=["ste"])
class StraightThrough(_Kernel):
    """Straight-through estimator: the derivative is 1 everywhere.

    Reference: Bengio et al., "Estimating or Propagating Gradients Through Stochastic Neurons for
    Conditional Computation", 2013.

    Example:
        >>> nn.surrogates.StraightThrough()(ops.ones((2,))).tolist()
        [1.0, 1.0]
    """

    kernel = "straight_through"
    slope = 1.0
