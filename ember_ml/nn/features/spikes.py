"""Encoders: numbers to spikes."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Positive, Size
from ember_ml.nn.features.base import FeatureExtractor
from ember_ml.registry import register


class _StepEncoder(FeatureExtractor):
    """Base of encoders of features as spikes: (..., features) -> (..., steps, features).

    Args:
        steps: Number of steps.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def _spread(self, x: TensorLike) -> Tensor:
        """Return the features with an axis of length 1 for the steps."""
        x = self.as_input(x)
        if x.ndim == 0:
            raise ShapeError(
                f"{type(self).__name__}: expected an input of shape (..., features), got a scalar"
            )
        x = x if x.dtype.is_floating else ops.astype(x, "float32")
        return ops.expand_dims(x, -2)

    def _positions(self, x: Tensor) -> Tensor:
        """Return the index of each step, (steps, 1), in the dtype of x."""
        ones = ops.broadcast_to(ops.ones_like(x[(0,) * x.ndim]), (self.steps, 1))
        return ops.cumsum(ones, axis=0) - 1.0


@register("features/rate_encoder")
class RateEncoder(_StepEncoder):
    """Rate code: a feature is the probability of a spike in each step, by independent draws.

    Args:
        steps: Number of steps.
        gain: Factor of the features; the product is clipped to 0 to 1. Default: 1.

    Shape: (..., features) -> (..., steps, features).

    Example:
        >>> encoder = nn.features.RateEncoder(4)
        >>> encoder(ops.array([[0.0, 1.0]])).tolist()
        [[[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]]
    """

    def __init__(self, steps: Size, gain: Positive = 1.0) -> None:
        super().__init__(steps)
        self.gain = gain

    def extract(self, x: TensorLike, seed: int | None = None) -> Tensor:
        """Return the spikes of the features.

        Args:
            x: Features, (..., features).
            seed: Seed of the draws. Default: the global generator.
        """
        x = self._spread(x) * self.gain
        shape = (*x.shape[:-2], self.steps, x.shape[-1])
        draws = ops.random.uniform(shape, seed=seed, dtype=x.dtype, device=x.device)
        return ops.astype(draws.to_backend(x.backend) < x, x.dtype)


@register("features/latency_encoder")
class LatencyEncoder(_StepEncoder):
    r"""Latency code: each feature is one spike; the larger the feature, the earlier.

    A feature x from 0 to 1 fires in step :math:`\mathrm{round}((1 - x)(T - 1))`. Features below the
    threshold do not fire.

    Args:
        steps: Number of steps T.
        threshold: Smallest feature that fires, at least 0. Default: 0.01.

    Shape: (..., features) -> (..., steps, features).

    Example:
        >>> encoder = nn.features.LatencyEncoder(3)
        >>> encoder(ops.array([1.0, 0.5, 0.0])).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, steps: Size, threshold: NonNegative = 0.01) -> None:
        super().__init__(steps)
        self.threshold = threshold

    def extract(self, x: TensorLike) -> Tensor:
        """Return the spikes of the features.

        Args:
            x: Features, (..., features), clipped to 0 to 1.
        """
        x = self._spread(x)
        if not x.size:
            return ops.zeros_like(ops.broadcast_to(x, (*x.shape[:-2], self.steps, x.shape[-1])))
        times = ops.round((1.0 - ops.clip(x, 0.0, 1.0)) * (self.steps - 1.0))
        fires = ops.logical_and(times == self._positions(x), x >= self.threshold)
        return ops.astype(fires, x.dtype)


@register("features/delta_encoder")
class DeltaEncoder(FeatureExtractor):
    """Delta code: a spike where a sequence has changed by at least a threshold.

    The change is measured from the value at the last spike of the feature, which is 0 before the
    first step. Small changes therefore add up until they fire, as in an event camera.

    Args:
        threshold: Change that fires, above 0. Default: 0.1.
        off_spikes: Whether a decrease is a spike of -1; otherwise decreases do not fire, and the
            value is compared with the smallest one since the last spike. Default: True.

    Shape: (batch, time, features) -> (batch, time, features), with the values -1, 0 and 1.

    Example:
        >>> x = ops.array([[[0.0], [0.3], [0.4], [0.0]]])
        >>> nn.features.DeltaEncoder(0.25)(x)[0, :, 0].tolist()
        [0.0, 1.0, 0.0, -1.0]
    """

    def __init__(self, threshold: Positive = 0.1, off_spikes: bool = True) -> None:
        self.threshold = threshold
        self.off_spikes = off_spikes

    def extract(self, x: TensorLike) -> Tensor:
        """Return the spikes of a sequence.

        Args:
            x: Sequence, (batch, time, features).
        """
        x = self.as_input(x)
        if x.ndim != 3:
            raise ShapeError(
                f"{type(self).__name__}: expected an input of shape (batch, time, features), got "
                f"{x.shape}"
            )
        x = x if x.dtype.is_floating else ops.astype(x, "float32")
        if not x.size:
            return x
        reference = ops.zeros_like(x[:, 0])
        spikes = []
        for value in ops.unstack(x, 1):
            change = value - reference
            up = change >= self.threshold
            down = change <= (-self.threshold if self.off_spikes else 0.0)
            reference = ops.where(ops.logical_or(up, down), value, reference)
            fall = ops.astype(down, x.dtype) if self.off_spikes else ops.zeros_like(value)
            spikes.append(ops.astype(up, x.dtype) - fall)
        return ops.stack(spikes, axis=1)
