"""Activations without parameters."""

from __future__ import annotations

from ember_ml.nn.activations import functions
from ember_ml.nn.activations.base import Activation
from ember_ml.registry import register


@register("activations/relu")
class ReLU(Activation):
    """Rectified linear unit: max(x, 0).

    Example:
        >>> nn.activations.ReLU()(tensor.array([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    function = staticmethod(functions.relu)


@register("activations/relu6")
class ReLU6(Activation):
    """Rectified linear unit capped at 6: min(max(x, 0), 6)."""

    function = staticmethod(functions.relu6)


@register("activations/relu_squared", aliases=["relu2", "squared_relu"])
class ReLUSquared(Activation):
    """Squared rectified linear unit: max(x, 0)^2.

    Reference: So et al., "Primer: Searching for Efficient Transformers", 2021.
    """

    function = staticmethod(functions.relu_squared)


@register("activations/selu")
class SELU(Activation):
    """Scaled ELU: preserves mean 0 and variance 1 from layer to layer.

    Reference: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """

    function = staticmethod(functions.selu)


@register("activations/silu", aliases=["swish"])
class SiLU(Activation):
    """Sigmoid linear unit, also called swish: x sigmoid(x).

    Reference: Elfwing et al., "Sigmoid-Weighted Linear Units", 2017.
    """

    function = staticmethod(functions.silu)


@register("activations/mish")
class Mish(Activation):
    """Mish: x tanh(softplus(x)).

    Reference: Misra, "Mish", 2019.
    """

    function = staticmethod(functions.mish)


@register("activations/tanh")
class Tanh(Activation):
    """Hyperbolic tangent."""

    function = staticmethod(functions.tanh)


@register("activations/lecun_tanh")
class LeCunTanh(Activation):
    """Scaled tanh, 1.7159 tanh(2 x / 3): maps -1 to -1 and 1 to 1, nearly linear in between.

    Reference: LeCun et al., "Efficient BackProp", 1998.
    """

    function = staticmethod(functions.lecun_tanh)


@register("activations/tanh_shrink", aliases=["tanhshrink"])
class TanhShrink(Activation):
    """Tanh shrinkage: x - tanh(x)."""

    function = staticmethod(functions.tanh_shrink)


@register("activations/sigmoid")
class Sigmoid(Activation):
    """Logistic sigmoid: 1 / (1 + exp(-x))."""

    function = staticmethod(functions.sigmoid)


@register("activations/log_sigmoid", aliases=["logsigmoid"])
class LogSigmoid(Activation):
    """Logarithm of the sigmoid, computed without underflow."""

    function = staticmethod(functions.log_sigmoid)


@register("activations/hard_sigmoid")
class HardSigmoid(Activation):
    """Piecewise linear sigmoid: min(max(x + 3, 0), 6) / 6."""

    function = staticmethod(functions.hard_sigmoid)


@register("activations/hard_swish", aliases=["hard_silu"])
class HardSwish(Activation):
    """Piecewise linear approximation of SiLU: x hard_sigmoid(x).

    Reference: Howard et al., "Searching for MobileNetV3", 2019.
    """

    function = staticmethod(functions.hard_swish)


@register("activations/softsign")
class Softsign(Activation):
    """Softsign: x / (1 + abs(x))."""

    function = staticmethod(functions.softsign)


@register("activations/identity", aliases=["linear"])
class Identity(Activation):
    """Identity function: returns x unchanged."""

    function = staticmethod(functions.identity)
