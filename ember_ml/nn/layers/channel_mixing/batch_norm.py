"""Batch normalisation."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Probability, Size
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.norms import gain, shift
from ember_ml.nn.parameter import Buffer
from ember_ml.registry import register


@register("layers/batch_norm", aliases=["batchnorm"])
class BatchNorm(Layer):
    """Mean 0 and variance 1 of each feature over the batch.

    In training with the batch's own statistics, of which a running mean is kept; in use with the
    running ones.

    Args:
        features: how many there are.
        axis: where they are.
        momentum: the weight of a new batch in the running statistics.
        eps: keeps the denominator from zero.
        affine: whether a gain and a shift of each feature are learned.

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
        self.weight = gain(features, affine)
        self.bias = shift(features, affine)
        self.running_mean = Buffer(ops.zeros(features))
        self.running_variance = Buffer(ops.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        """The features normalised."""
        self.check_features(x, self.features, self.axis)
        if self.training:
            return self._train(x)
        mean, variance = self.running_mean, self.running_variance
        return ops.batch_norm(
            x, mean, variance, self.weight, self.bias, eps=self.eps, axis=self.axis
        )

    def _train(self, x: Tensor) -> Tensor:
        y, mean, variance = ops.batch_norm_train(
            x, self.weight, self.bias, eps=self.eps, axis=self.axis
        )
        count = x.size // self.features
        unbiased = ops.stop_gradient(variance) * (count / max(count - 1, 1))
        self._follow(self.running_mean, ops.stop_gradient(mean))
        self._follow(self.running_variance, unbiased)
        return y

    def _follow(self, buffer: Buffer, value: Tensor) -> None:
        buffer.assign(buffer + self.momentum * (value - buffer))
