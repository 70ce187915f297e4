"""Losses of spike trains, (batch, time, neurons)."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.numbers import positive
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Positive, Probability
from ember_ml.ops.nn.losses import reduce as reduced
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss, Reduction, pair, weighted, wide
from ember_ml.training.losses.classes import cross_entropy


def _trains(name: str, prediction: TensorLike) -> Tensor:
    """Return spike trains, which must be (batch, time, neurons) and have a step."""
    x = wide(prediction)
    if x.ndim != 3 or not x.shape[1]:
        raise ShapeError(
            f"{name}: expected spikes of shape (batch, time, neurons) with at least one step, got "
            f"{x.shape}"
        )
    return x


def spike_rate(
    prediction: TensorLike,
    target: TensorLike,
    *,
    correct: float = 1.0,
    incorrect: float = 0.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return the squared differences of firing rates from target rates.

    Args:
        prediction: Spikes, (batch, time, neurons).
        target: Rates, (batch, neurons), or the index of the neuron that should fire, integers of
            shape (batch,). An index that is out of range makes the loss NaN.
        correct: Target rate of that neuron.
        incorrect: Target rate of the other neurons.
        reduction: "mean", "sum" or "none" (the loss of each neuron).
        sample_weight: Factor on the loss of each example or neuron, or a boolean mask.
    """
    x = _trains("spike_rate", prediction)
    goal = convert_to_tensor(target, backend=x.backend)
    if goal.dtype.is_integer and goal.ndim == 1:
        hot = ops.one_hot(goal, x.shape[2], dtype=x.dtype)
        known = ops.logical_and(goal >= 0, goal < x.shape[2])
        goal = ops.where(known[:, None], incorrect + (correct - incorrect) * hot, math.nan)
    rates, goal = pair("spike_rate", ops.mean(x, axis=1), goal)
    return weighted(
        "spike_rate", lambda how: ops.mse_loss(rates, goal, how), reduction, sample_weight
    )


def spike_count(
    prediction: TensorLike,
    target: TensorLike,
    *,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return the cross entropy of classes whose logits are the numbers of spikes.

    Args:
        prediction: Spikes, (batch, time, classes).
        target: Classes, integers of shape (batch,).
        reduction: "mean", "sum" or "none" (the loss of each example).
        sample_weight: Factor on the loss of each example, or a boolean mask.
    """
    counts = ops.sum(_trains("spike_count", prediction), axis=1)
    return cross_entropy(counts, target, reduction=reduction, sample_weight=sample_weight)


def van_rossum(
    prediction: TensorLike,
    target: TensorLike,
    *,
    tau: float = 10.0,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    r"""Return the squared van Rossum distances of spike trains.

    Each spike becomes an exponential that decays with the time constant `tau`; the distance is the
    area between two such traces: :math:`\frac{1}{\tau} \sum_t (f_t - g_t)^2`.

    Args:
        prediction: Spikes, (batch, time, neurons).
        target: Spikes of the same shape.
        tau: Time constant in steps, above 0.
        reduction: "mean", "sum" or "none" (the distance of each neuron).
        sample_weight: Factor on the distance of each example or neuron, or a boolean mask.
    """
    tau = positive("van_rossum", "tau", tau)
    x, y = pair("van_rossum", _trains("van_rossum", prediction), target)
    decay = ops.full_like(x[:1, :1, :1], math.exp(-1.0 / tau))
    traces, _ = ops.linear_recurrence(decay, x - y)
    distances = ops.sum(traces * traces, axis=1) / tau
    return weighted(
        "van_rossum", lambda how: reduced("van_rossum", distances, how), reduction, sample_weight
    )


@register("losses/spike_rate", aliases=["mse_rate"])
class SpikeRate(Loss):
    """Squared difference of the firing rates from target rates.

    The target is rates, (batch, neurons), or the index of the neuron that should fire, (batch,).

    Args:
        correct: Target rate of that neuron, 0 to 1. Default: 1.
        incorrect: Target rate of the other neurons, 0 to 1. Default: 0.
        reduction: "mean", "sum" or "none" (the loss of each neuron).

    Example:
        >>> ember_ml.training.losses.SpikeRate()([[[1.0, 0.0], [1.0, 1.0]]], [0]).item()
        0.125
    """

    function = staticmethod(spike_rate)

    def __init__(
        self,
        correct: Probability = 1.0,
        incorrect: Probability = 0.0,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"correct": correct, "incorrect": incorrect}


@register("losses/spike_count", aliases=["ce_count"])
class SpikeCount(Loss):
    """Cross entropy of classes whose logits are the numbers of spikes.

    Args:
        reduction: "mean", "sum" or "none" (the loss of each example).

    Example:
        >>> round(ember_ml.training.losses.SpikeCount()([[[1.0, 0.0], [1.0, 1.0]]], [0]).item(), 4)
        0.3133
    """

    function = staticmethod(spike_count)


@register("losses/van_rossum")
class VanRossum(Loss):
    r"""Squared van Rossum distance of two spike trains.

    Each spike becomes an exponential that decays with the time constant `tau`; the distance is the
    area between two such traces: :math:`\frac{1}{\tau} \sum_t (f_t - g_t)^2`.

    Args:
        tau: Time constant in steps, above 0: small values compare the times of spikes, large ones
            their numbers. Default: 10.
        reduction: "mean", "sum" or "none" (the distance of each neuron).

    Reference: van Rossum, "A novel spike distance", 2001.

    Example:
        >>> train = [[[0.0], [1.0], [0.0]]]
        >>> ember_ml.training.losses.VanRossum()(train, train).item()
        0.0
    """

    function = staticmethod(van_rossum)

    def __init__(self, tau: Positive = 10.0, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.options["tau"] = tau
