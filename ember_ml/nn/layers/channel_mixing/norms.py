"""Norms over the features of one example."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


def gain(features: int, wanted: bool = True) -> Parameter | None:
    """Ones to scale with, which weight decay leaves alone."""
    return Parameter(ops.ones(features), decay=False) if wanted else None


def shift(features: int, wanted: bool = True) -> Parameter | None:
    """Zeros to add, which weight decay leaves alone."""
    return Parameter(ops.zeros(features), decay=False) if wanted else None


@register("layers/layer_norm", aliases=["layernorm"])
class LayerNorm(Layer):
    r"""Mean 0 and variance 1 over the features of each position.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \gamma + \beta

    Args:
        features: how many there are.
        eps: keeps the denominator from zero.
        affine: whether there is a gamma.
        bias: whether there is a beta, if there is a gamma.

    Shape: (..., features) -> (..., features).

    Reference: Ba et al., "Layer Normalization", 2016.
    """

    def __init__(
        self, features: Size, eps: Positive = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        self.features = features
        self.eps = eps
        self.weight = gain(features, affine)
        self.bias = shift(features, affine and bias)

    def forward(self, x: Tensor) -> Tensor:
        """The features normalised."""
        self.check_features(x, self.features)
        return ops.layer_norm(x, self.weight, self.bias, self.eps)


@register("layers/rms_norm", aliases=["rmsnorm"])
class RMSNorm(Layer):
    r"""Root mean square 1 over the features of each position.

    .. math:: y = \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}} \gamma

    Args:
        features: how many there are.
        eps: keeps the denominator from zero.
        affine: whether there is a gamma.

    Shape: (..., features) -> (..., features).

    Reference: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """

    def __init__(self, features: Size, eps: Positive = 1e-6, affine: bool = True) -> None:
        self.features = features
        self.eps = eps
        self.weight = gain(features, affine)

    def forward(self, x: Tensor) -> Tensor:
        """The features normalised."""
        self.check_features(x, self.features)
        return ops.rms_norm(x, self.weight, self.eps)


@register("layers/group_norm", aliases=["groupnorm"])
class GroupNorm(Layer):
    """Mean 0 and variance 1 over groups of channels of each example.

    Args:
        num_groups: into how many groups the channels are parted.
        features: the number of channels.
        eps: keeps the denominator from zero.
        affine: whether a gain and a shift of each channel are learned.

    Shape: (batch, features, ...) -> (batch, features, ...).

    Reference: Wu and He, "Group Normalization", 2018.
    """

    def __init__(
        self, num_groups: Size, features: Size, eps: Positive = 1e-5, affine: bool = True
    ) -> None:
        if features % num_groups:
            raise ArgumentError(
                f"GroupNorm: features={features} must be a multiple of num_groups={num_groups}"
            )
        self.num_groups = num_groups
        self.features = features
        self.eps = eps
        self.weight = gain(features, affine)
        self.bias = shift(features, affine)

    def forward(self, x: Tensor) -> Tensor:
        """The channels normalised."""
        self.check_features(x, self.features, axis=1 if x.ndim > 1 else -1)
        return ops.group_norm(x, self.weight, self.bias, num_groups=self.num_groups, eps=self.eps)
