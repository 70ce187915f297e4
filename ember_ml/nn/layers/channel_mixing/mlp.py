"""The multi-layer perceptron."""

from __future__ import annotations

import itertools

from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import ActivationField, Below1, Size, Sizes
from ember_ml.nn import activations
from ember_ml.nn.containers import ModuleList
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.registry import register


@register("layers/mlp")
class MLP(Layer):
    r"""Dense layers with an activation between them.

    .. math:: y = W_n \, \phi( \dots \phi(W_1 x))

    Args:
        in_features: the number of features of x.
        hidden_features: the sizes of the hidden layers; one of 4 times in_features if not given.
        out_features: the number of features of y; in_features if not given.
        activation: phi.
        bias: whether the layers have biases.
        dropout: the share of hidden units that training drops.

    Shape: (..., in_features) -> (..., out_features).

    Example:
        >>> nn.layers.MLP(4, [8, 8], 2)(ops.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(
        self,
        in_features: Size,
        hidden_features: Sizes | None = None,
        out_features: Size | None = None,
        activation: ActivationField = "gelu",
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        hidden = (4 * in_features,) if hidden_features is None else hidden_features
        hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        sizes = (in_features, *hidden, out_features or in_features)
        self.layers = ModuleList(
            Dense(size, following, bias=bias) for size, following in itertools.pairwise(sizes)
        )
        self.activation = activations.get(activation)
        self.dropout = Dropout(dropout) if dropout else None

    def forward(self, x: Tensor) -> Tensor:
        """The features mapped."""
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
            if self.dropout is not None:
                x = self.dropout(x)
        return last(x)
