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
from ember_ml.nn.module import Module
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit
from ember_ml.registry import register


@register("layers/mlp")
class MLP(Layer):
    r"""Multi-layer perceptron: dense layers with an activation between them.

    .. math:: y = W_n \, \phi( \dots \phi(W_1 x))

    Args:
        in_features: Number of input features.
        hidden_features: Sizes of the hidden layers. Default: one layer of 4 times `in_features`.
        out_features: Number of output features. Default: `in_features`.
        activation: The activation function phi. Default: "gelu".
        bias: Whether the layers have biases. Default: True.
        dropout: Probability of zeroing a hidden unit during training. Default: 0.

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
        hidden = 4 * in_features if hidden_features is None else hidden_features
        hidden = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        sizes = (in_features, *hidden, out_features or in_features)
        self.layers = ModuleList(
            Dense(size, next_size, bias=bias) for size, next_size in itertools.pairwise(sizes)
        )
        self.activation = activations.get(activation)
        self.dropout = Dropout(dropout) if dropout else None

    def tensor_split(self) -> TensorSplit | None:
        """Return the split of pairs of layers, by the features between them.

        Only if the activation maps features one by one. A learned one must be inside a pair.
        """
        is_learned = isinstance(self.activation, Module) and self.activation.parameters()
        if not activations.is_elementwise(self.activation) or (is_learned and len(self.layers) > 2):
            return None
        pairs = [(f"layers.{at}", f"layers.{at + 1}") for at in range(0, len(self.layers) - 1, 2)]
        splits = {f"{first}.{part}": Split(0) for first, _ in pairs for part in ("weight", "bias")}
        return TensorSplit(
            {**splits, **{f"{last}.weight": Split(1) for _, last in pairs}},
            enter=tuple(first for first, _ in pairs),
            leave=tuple(last for _, last in pairs),
            once=tuple(f"{last}.bias" for _, last in pairs),
            shared=("activation",) if isinstance(self.activation, Module) else (),
        )

    @property
    def is_position_wise(self) -> bool:  # type: ignore[override]
        """Whether the activation maps features one by one."""
        return activations.is_elementwise(self.activation)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layers."""
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
            if self.dropout is not None:
                x = self.dropout(x)
        return last(x)
