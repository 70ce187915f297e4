"""The dense layer."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import EmberError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import InitializerField, OptionalActivationField, Size
from ember_ml.nn import activations, initializers
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/dense", aliases=["linear"])
class Dense(Layer):
    r"""Affine map of the features with an optional activation.

    .. math:: y = \phi(x W^\top + b)

    Args:
        in_features: Number of input features.
        out_features: Number of output features.
        bias: Whether to add the bias b. Default: True.
        activation: The activation function phi, by name or as a function. Default: none.
        kernel_initializer: Initializer of W, which has the shape (out_features, in_features).
            Default: "glorot".
        bias_initializer: Initializer of b. Default: "zeros".

    Shape: (..., in_features) -> (..., out_features).

    Example:
        >>> nn.layers.Dense(4, 2)(ops.ones((3, 4))).shape
        (3, 2)
    """

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        bias: bool = True,
        activation: OptionalActivationField = None,
        kernel_initializer: InitializerField = "glorot",
        bias_initializer: InitializerField = "zeros",
    ) -> None:
        self.in_features = in_features
        self.out_features = out_features
        kernel = initializers.get(kernel_initializer)
        self.weight = Parameter(kernel((out_features, in_features)))
        self.bias: Parameter | None = None
        if bias:
            initial_bias = initializers.get(bias_initializer)((out_features,))
            self.bias = Parameter(initial_bias, decay=False)
        self.activation = None if activation is None else activations.get(activation)

    @property
    def is_position_wise(self) -> bool:  # type: ignore[override]
        """Whether there is no activation, or one that maps features one by one."""
        return self.activation is None or activations.is_elementwise(self.activation)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        try:
            y = ops.linear(x, self.weight, self.bias)
        except EmberError:
            self.check_features(x, self.in_features)
            raise
        return y if self.activation is None else self.activation(y)


def bias_of(layer: Dense) -> Parameter:
    """Return the bias of a layer that has one."""
    assert layer.bias is not None
    return layer.bias
