"""Elementwise scale and shift of features."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/feature_scale")
class FeatureScale(Layer):
    r"""Learned factor of each feature, with an optional shift.

    .. math:: y = s \odot x + b

    Args:
        features: Number of features.
        bias: Whether to add the shift b. Default: False.

    Shape: (..., features) -> (..., features).

    Example:
        >>> nn.layers.FeatureScale(2)(ops.ones((3, 2))).shape
        (3, 2)
    """

    def __init__(self, features: Size, bias: bool = False) -> None:
        self.features = features
        self.scale = Parameter(ops.ones((features,)), decay=False)
        self.bias = Parameter(ops.zeros((features,)), decay=False) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer."""
        self.check_features(x, self.features)
        y = x * self.scale
        return y if self.bias is None else y + self.bias
