"""Feed-forward layers: the plain two-layer network and gated linear units."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.activations import GELUConfig
from ember_ml.configs.fields import ActivationField, Below1, Size
from ember_ml.nn import activations
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.nn.module import Module
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register

GELU_TANH: GELUConfig = GELUConfig(approximate=True)


def inner_size(features: int, multiple_of: int = 16) -> int:
    """Return the inner size of a gated layer with about 8 features^2 parameters.

    It is 8/3 of the features, rounded up to a multiple. A gated layer of this size has as many
    parameters as a plain feed-forward layer with 4 times the features inside.

    Args:
        features: Number of input and output features.
        multiple_of: The result is a multiple of this. Default: 16.
    """
    return -(-(8 * features // 3) // multiple_of) * multiple_of


class _TwoLayerNetwork(Layer):
    """Base of the feed-forward layers: expansion, nonlinearity, dropout, reduction.

    Subclasses set the attributes and implement `hidden`.
    """

    features: int
    expand: Dense
    reduce: Dense
    activation: Callable[..., Tensor]
    dropout: Dropout | None

    @property
    def is_position_wise(self) -> bool:  # type: ignore[override]
        """Whether the activation maps features one by one."""
        return activations.is_elementwise(self.activation)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        self.check_features(x, self.features)
        hidden = self.hidden(self.expand(x))
        if self.dropout is not None:
            hidden = self.dropout(hidden)
        return self.reduce(hidden)

    def hidden(self, expanded: Tensor) -> Tensor:
        """Return the inner features from the output of `expand`."""
        raise NotImplementedError

    def tensor_split(self) -> TensorSplit | None:
        """Return the split by inner features, if the activation maps them one by one."""
        if not activations.is_elementwise(self.activation):
            return None
        blocks = self.expand.out_features // self.reduce.in_features  # gate and value
        shared = ("activation",) if isinstance(self.activation, Module) else ()
        return split_between({"expand": Split(0, blocks)}, "reduce", shared=shared)


@register("layers/gated_linear", aliases=["gated-linear", "gated_mlp"])
class GatedLinear(_TwoLayerNetwork):
    r"""Gated linear unit with any activation as the gate.

    .. math:: y = W_3 (\phi(W_1 x) \odot W_2 x)

    W1 and W2 are the two halves of one matrix, `expand`.

    Args:
        features: Number of input and output features.
        inner_features: Number of rows of W1 and of W2. Default: 8/3 of the features, rounded up to
            a multiple of 16.
        activation: The activation function phi. Default: "silu".
        bias: Whether the projections have biases. Default: False.
        dropout: Probability of zeroing an inner feature during training. Default: 0.

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
        # the variance that two separate matrices would have
        gain = math.sqrt((features + 2 * inner) / (features + inner))
        glorot = {"type": "glorot", "gain": gain}
        self.expand = Dense(features, 2 * inner, bias=bias, kernel_initializer=glorot)
        self.reduce = Dense(inner, features, bias=bias)
        self.activation = activations.get(activation)
        self.dropout = Dropout(dropout) if dropout else None

    def hidden(self, expanded: Tensor) -> Tensor:
        """Return the gate, after the activation, times the value."""
        gate, value = ops.split(expanded, 2, axis=-1)
        return self.activation(gate) * value


class _FixedGate(GatedLinear):
    """Base of the gated linear units with a fixed activation, named by `gate`."""

    gate: ClassVar[str]

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        bias: bool = False,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, inner_features, self.gate, bias, dropout)


@register("layers/glu")
class GLU(_FixedGate):
    r"""Gated linear unit with a sigmoid gate.

    .. math:: y = W_3 (\sigma(W_1 x) \odot W_2 x)

    Args:
        features: Number of input and output features.
        inner_features: Number of rows of W1 and of W2. Default: 8/3 of the features, rounded up to
            a multiple of 16.
        bias: Whether the projections have biases. Default: False.
        dropout: Probability of zeroing an inner feature during training. Default: 0.

    Shape: (..., features) -> (..., features).

    Reference: Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2017.
    """

    gate = "sigmoid"


@register("layers/swiglu")
class SwiGLU(_FixedGate):
    r"""Gated linear unit with a SiLU gate.

    .. math:: y = W_3 (\mathrm{silu}(W_1 x) \odot W_2 x)

    Args:
        features: Number of input and output features.
        inner_features: Number of rows of W1 and of W2. Default: 8/3 of the features, rounded up to
            a multiple of 16.
        bias: Whether the projections have biases. Default: False.
        dropout: Probability of zeroing an inner feature during training. Default: 0.

    Shape: (..., features) -> (..., features).

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.

    Example:
        >>> nn.layers.SwiGLU(128).num_parameters()
        135168
    """

    gate = "silu"

    def hidden(self, expanded: Tensor) -> Tensor:
        """Return the gate, after the SiLU, times the value."""
        return ops.swiglu(expanded)


@register("layers/geglu")
class GeGLU(_FixedGate):
    r"""Gated linear unit with a GELU gate.

    .. math:: y = W_3 (\mathrm{gelu}(W_1 x) \odot W_2 x)

    Args:
        features: Number of input and output features.
        inner_features: Number of rows of W1 and of W2. Default: 8/3 of the features, rounded up to
            a multiple of 16.
        bias: Whether the projections have biases. Default: False.
        dropout: Probability of zeroing an inner feature during training. Default: 0.

    Shape: (..., features) -> (..., features).

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.
    """

    gate = "gelu"


@register("layers/reglu")
class ReGLU(_FixedGate):
    r"""Gated linear unit with a ReLU gate.

    .. math:: y = W_3 (\max(W_1 x, 0) \odot W_2 x)

    Args:
        features: Number of input and output features.
        inner_features: Number of rows of W1 and of W2. Default: 8/3 of the features, rounded up to
            a multiple of 16.
        bias: Whether the projections have biases. Default: False.
        dropout: Probability of zeroing an inner feature during training. Default: 0.

    Shape: (..., features) -> (..., features).

    Reference: Shazeer, "GLU Variants Improve Transformer", 2020.
    """

    gate = "relu"


@register("layers/feed_forward", aliases=["feed-forward", "mad-mlp"])
class FeedForward(_TwoLayerNetwork):
    r"""Feed-forward layer of a transformer.

    .. math:: y = W_2 \, \phi(W_1 x)

    Args:
        features: Number of input and output features.
        inner_features: Number of rows of W1. Default: 4 times the features.
        activation: The activation function phi. Default: GELU with the tanh approximation.
        bias: Whether the projections have biases. Default: False.
        dropout: Probability of zeroing an inner feature during training. Default: 0.

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

    def hidden(self, expanded: Tensor) -> Tensor:
        """Return the inner features after the activation."""
        return self.activation(expanded)
