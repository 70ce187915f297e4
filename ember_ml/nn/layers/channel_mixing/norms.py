"""Normalization layers."""

from __future__ import annotations

import contextlib
import threading

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Probability, Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.functional import is_compiling
from ember_ml.nn.layers.base import Layer, upcast_half
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.tensor_split import WHOLE, Region
from ember_ml.registry import register

_tracking = threading.Lock()
"""Lock for updates of running statistics, so that batches of all threads are counted."""


def _scale(features: int, affine: bool) -> Parameter | None:
    return Parameter(ops.ones(features), decay=False) if affine else None


def _shift(features: int, affine: bool) -> Parameter | None:
    return Parameter(ops.zeros(features), decay=False) if affine else None


@register("layers/layer_norm", aliases=["layernorm"])
class LayerNorm(Layer):
    r"""Layer normalization: mean 0 and variance 1 over the features of each position.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \gamma + \beta

    Args:
        features: Number of features.
        eps: Value added to the variance for numerical stability. Default: 1e-5.
        affine: Whether to learn gamma. Default: True.
        bias: Whether to learn beta; only if `affine`. Default: True.

    Shape: (..., features) -> (..., features).

    Reference: Ba et al., "Layer Normalization", 2016.
    """

    is_position_wise = True

    def __init__(
        self, features: Size, eps: Positive = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        self.features = features
        self.eps = eps
        self.weight = _scale(features, affine)
        self.bias = _shift(features, affine and bias)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the features."""
        self.check_features(x, self.features)
        return ops.layer_norm(x, self.weight, self.bias, self.eps)


@register("layers/rms_norm", aliases=["rmsnorm"])
class RMSNorm(Layer):
    r"""Root mean square normalization over the features of each position.

    .. math:: y = \frac{x}{\sqrt{\mathrm{E}[x^2] + \epsilon}} \gamma

    Args:
        features: Number of features.
        eps: Value added to the mean square for numerical stability. Default: 1e-6.
        affine: Whether to learn gamma. Default: True.

    Shape: (..., features) -> (..., features).

    Reference: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """

    is_position_wise = True
    region: Region = WHOLE
    """Processes that the features are split among."""

    def __init__(self, features: Size, eps: Positive = 1e-6, affine: bool = True) -> None:
        self.features = features
        self.eps = eps
        self.weight = _scale(features, affine)

    def forward(self, x: Tensor, gate: Tensor | None = None, gate_first: bool = False) -> Tensor:
        """Normalize the features, and multiply them by silu(gate) if there is one.

        Args:
            x: Input, (..., features).
            gate: Input of the gate, in the shape of x. Default: none.
            gate_first: Whether to apply the gate before the norm. Default: False.
        """
        self.check_features(x, self.features)
        if gate is None:
            return self._normalize(x)
        if self.region.size == 1:
            return ops.gated_rms_norm(x, gate, self.weight, self.eps, gate_first)
        if gate_first:
            return self._normalize(ops.silu_gate(x, gate))
        return ops.silu_gate(self._normalize(x), gate)

    def _normalize(self, x: Tensor) -> Tensor:
        if self.region.size == 1:
            return ops.rms_norm(x, self.weight, self.eps)
        part = upcast_half(x)
        square = self.region.total(ops.mean(ops.square(part), axis=-1, keepdims=True))
        y = ops.cast(part * ops.rsqrt(square / self.region.size + self.eps), x.dtype)
        return y if self.weight is None else y * self.weight


@register("layers/group_norm", aliases=["groupnorm"])
class GroupNorm(Layer):
    r"""Group normalization: mean 0 and variance 1 over each group of channels of an example.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \gamma + \beta

    Args:
        num_groups: Number of groups that the channels are split into.
        features: Number of channels. Must be divisible by `num_groups`.
        eps: Value added to the variance for numerical stability. Default: 1e-5.
        affine: Whether to learn gamma and beta for each channel. Default: True.

    Shape: (batch, features, ...) -> (batch, features, ...).

    Reference: Wu and He, "Group Normalization", 2018.
    """

    def __init__(
        self, num_groups: Size, features: Size, eps: Positive = 1e-5, affine: bool = True
    ) -> None:
        require_divisible(self, features=features, num_groups=num_groups)
        self.num_groups = num_groups
        self.features = features
        self.eps = eps
        self.weight = _scale(features, affine)
        self.bias = _shift(features, affine)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the groups of channels."""
        self.check_features(x, self.features, axis=1 if x.ndim > 1 else -1)
        return ops.group_norm(x, self.weight, self.bias, num_groups=self.num_groups, eps=self.eps)


@register("layers/batch_norm", aliases=["batchnorm"])
class BatchNorm(Layer):
    r"""Batch normalization: mean 0 and variance 1 of each feature over the batch.

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \gamma + \beta

    Training uses the statistics of the batch and updates the running statistics. Inference uses
    the running statistics.

    Args:
        features: Number of features.
        axis: Axis of the features. Default: -1.
        momentum: Weight of a new batch in the running statistics. Default: 0.1.
        eps: Value added to the variance for numerical stability. Default: 1e-5.
        affine: Whether to learn gamma and beta for each feature. Default: True.

    Shape: (..., features) -> (..., features), or with the features along another axis.

    Reference: Ioffe and Szegedy, "Batch Normalization", 2015.
    """

    def __init__(
        self,
        features: Size,
        axis: int = -1,
        momentum: Probability = 0.1,
        eps: Positive = 1e-5,
        affine: bool = True,
    ) -> None:
        self.features = features
        self.axis = axis
        self.momentum = momentum
        self.eps = eps
        self.weight = _scale(features, affine)
        self.bias = _shift(features, affine)
        self.running_mean = Buffer(ops.zeros(features))
        self.running_variance = Buffer(ops.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the features."""
        self.check_features(x, self.features, self.axis)
        if self.training:
            return self._normalize_and_track(x)
        mean, variance = self.running_mean, self.running_variance
        y = ops.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps, axis=self.axis)
        is_half = x.dtype.is_floating and x.dtype.bits == 16
        return ops.astype(y, x.dtype) if is_half else y  # float32 in mixed precision

    def _normalize_and_track(self, x: Tensor) -> Tensor:
        y, mean, variance = ops.batch_norm_train(
            x, self.weight, self.bias, eps=self.eps, axis=self.axis
        )
        count = x.size // self.features
        unbiased = ops.stop_gradient(variance) * (count / max(count - 1, 1))
        with contextlib.nullcontext() if is_compiling(self.running_mean) else _tracking:
            self._update(self.running_mean, ops.stop_gradient(mean))
            self._update(self.running_variance, unbiased)
        return y

    def _update(self, buffer: Buffer, value: Tensor) -> None:
        buffer.assign(buffer + self.momentum * (value - buffer))
