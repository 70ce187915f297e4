"""Gated linear units, and the plain feed-forward layer that they replace."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.activations import GELUConfig
from ember_ml.configs.fields import ActivationField, Below1, Size
from ember_ml.nn import activations
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.registry import register

GELU_TANH = GELUConfig(approximate=True)


def inner_size(features: int, multiple_of: int = 16) -> int:
    """8/3 of the features, rounded up: so many make a gated layer as large as a plain one."""
    return -(-(8 * features // 3) // multiple_of) * multiple_of


@register("layers/gated_linear", aliases=["gated-linear", "gated_mlp"])
class GatedLinear(Layer):
    r"""A linear map of the features, gated by an activation of another.

    .. math:: y = W_3 (\phi(W_1 x) \odot W_2 x)

    W1 and W2 are the two halves of one matrix, `expand`.

    Args:
        features: the number of features of x and y.
        inner_features: the rows of W1 and of W2; 8/3 of the features, up to a multiple of 16, if
            not given.
        activation: phi.
        bias: whether the maps have biases.
        dropout: the share of inner features that training drops.

    Shape: (..., features) -> (..., features).

    Reference: Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017; Shazeer,
    "GLU Variants Improve Transformer", 2020.

    Example:
        >>> nn.layers.GatedLinear(8, activation="tanh")(ops.ones((2, 3, 8))).shape
        (2, 3, 8)
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        activation: ActivationField = "silu",
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        self.features = features
        inner = inner_features or inner_size(features)
        # of the variance that two matrices of their own would have
        gain = math.sqrt((features + 2 * inner) / (features + inner))
        start = {"type": "glorot", "gain": gain}
        self.expand = Dense(features, 2 * inner, bias=bias, kernel_initializer=start)
        self.reduce = Dense(inner, features, bias=bias)
        self.activation = activations.get(activation)
        self.dropout = Dropout(dropout) if dropout else None

    def forward(self, x: Tensor) -> Tensor:
        """The features mapped."""
        self.check_features(x, self.features)
        inner = self.gated(self.expand(x))
        if self.dropout is not None:
            inner = self.dropout(inner)
        return self.reduce(inner)

    def gated(self, both: Tensor) -> Tensor:
        """The product of the two halves, the first through the activation."""
        gate, value = ops.split(both, 2, axis=-1)
        return self.activation(gate) * value


@register("layers/glu")
class GLU(GatedLinear):
    r"""Gated linear unit.

    .. math:: y = W_3 (\sigma(W_1 x) \odot W_2 x)

    Args and shape: as of `GatedLinear`.

    Reference: Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, inner_features, "sigmoid", bias, dropout)


@register("layers/swiglu")
class SwiGLU(GatedLinear):
    r"""Gated linear unit with a SiLU gate.

    .. math:: y = W_3 (\mathrm{silu}(W_1 x) \odot W_2 x)

    Args and shape: as of `GatedLinear`.

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.

    Example:
        >>> nn.layers.SwiGLU(128).num_parameters()
        135168
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, inner_features, "silu", bias, dropout)

    def gated(self, both: Tensor) -> Tensor:
        """The product of the two halves, the first through the SiLU."""
        return ops.swiglu(both)


@register("layers/geglu")
class GeGLU(GatedLinear):
    r"""Gated linear unit with a GELU gate.

    .. math:: y = W_3 (\mathrm{gelu}(W_1 x) \odot W_2 x)

    Args and shape: as of `GatedLinear`.

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, inner_features, "gelu", bias, dropout)


@register("layers/reglu")
class ReGLU(GatedLinear):
    r"""Gated linear unit with a ReLU gate.

    .. math:: y = W_3 (\max(W_1 x, 0) \odot W_2 x)

    Args and shape: as of `GatedLinear`.

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, inner_features, "relu", bias, dropout)


@register("layers/feed_forward", aliases=["feed-forward", "mad-mlp"])
class FeedForward(Layer):
    r"""The feed-forward layer of a transformer.

    .. math:: y = W_2 \, \phi(W_1 x)

    Args:
        features: the number of features of x and y.
        inner_features: the rows of W1; 4 times the features if not given.
        activation: phi, GELU in the form with tanh if not given.
        bias: whether the maps have biases.
        dropout: the share of inner features that training drops.

    Shape: (..., features) -> (..., features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> nn.layers.FeedForward(128).num_parameters()
        131072
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        activation: ActivationField = GELU_TANH,
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        self.features = features
        inner = inner_features or 4 * features
        self.expand = Dense(features, inner, bias=bias)
        self.reduce = Dense(inner, features, bias=bias)
        self.activation = activations.get(activation)
        self.dropout = Dropout(dropout) if dropout else None

    def forward(self, x: Tensor) -> Tensor:
        """The features mapped."""
        self.check_features(x, self.features)
        inner = self.activation(self.expand(x))
        if self.dropout is not None:
            inner = self.dropout(inner)
        return self.reduce(inner)
