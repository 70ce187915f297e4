"""Spiking neurons with recurrent synapses and delays."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Count, Positive, Probability, Size, SurrogateField
from ember_ml.nn.initializers import Normal, Uniform
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import index_range
from ember_ml.nn.layers.sequence_mixing.spiking.base import Reset, SpikingLayer, per_neuron
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.registry import register

MOST_WEIGHTS = 2**30
"""Limit of max_delay * features^2: 4 GiB in float32."""


@register("layers/recurrent_lif", aliases=["rlif", "rleaky"])
class RecurrentLIF(SpikingLayer):
    r"""Leaky integrate-and-fire neurons with recurrent synapses, each with a delay.

    .. math::
        v'_{t,i} = \beta_i v_{t-1,i} + x_{t,i} + \sum_j W_{ij} \, z_{t-d_{ij},j}

    Spikes and resets are those of `LIF`. A learned delay is a real number: the synapse then
    transmits a mixture of the spikes at the two nearest steps, and gradients reach the delay.

    Args:
        features: Number of neurons. Each takes one input feature as its current.
        beta: Decay of the voltage in one step, 0 to 1. Default: 0.9.
        threshold: Voltage above which a neuron fires, above 0. Default: 1.
        reset: What a spike does to the voltage: "soft", "hard" or "none"; see `LIF`.
        refractory: Number of steps that a neuron rests after a spike. Default: 0.
        surrogate: Surrogate gradient of spikes, from `ember_ml.nn.surrogates`. Default: "atan".
        alpha: Decay of a synaptic current, 0 to 1, as in `Synaptic`. Default: none; inputs and
            spikes change the voltage at once.
        max_delay: Largest delay, in steps. Delays are initialized uniformly from 1 to it;
            `set_delays` replaces them. Default: 1.
        learn_delays: Whether delays are learned. `max_delay` must then be at least 2.
            Default: False.
        learn_beta: Whether `beta` is learned, one value per neuron. Default: False.
        learn_threshold: Whether `threshold` is learned, one value per neuron. Default: False.

    Attributes:
        weight: Recurrent weights, (features, features): `weight[i, j]` from neuron j to neuron i.
        delays: Delays of the synapses in steps, (features, features).

    Shape: (batch, time, features) -> (batch, time, features), zeros and ones. The state is a
    tuple: the voltage, the synaptic current if `alpha` is given, the number of steps left to rest
    if `refractory` is not 0, each (batch, features), and the last spikes, (batch, max_delay,
    features).

    Time and memory grow with `max_delay`: the weights are stored once for each delay.

    Example:
        >>> layer = nn.layers.RecurrentLIF(4, max_delay=3)
        >>> layer(ops.ones((2, 5, 4))).shape
        (2, 5, 4)
    """

    delays: Parameter | Buffer

    def __init__(
        self,
        features: Size,
        beta: Probability = 0.9,
        threshold: Positive = 1.0,
        reset: Reset = "soft",
        refractory: Count = 0,
        surrogate: SurrogateField = "atan",
        alpha: Probability | None = None,
        max_delay: Size = 1,
        learn_delays: bool = False,
        learn_beta: bool = False,
        learn_threshold: bool = False,
    ) -> None:
        super().__init__(
            features, beta, threshold, reset, refractory, surrogate, learn_beta, learn_threshold
        )
        if alpha is not None:
            self.alpha = per_neuron(features, alpha, learn=False)
        if learn_delays and max_delay < 2:
            raise ArgumentError(
                f"RecurrentLIF: learn_delays requires max_delay of at least 2, got {max_delay}"
            )
        _check_size(type(self).__name__, features, max_delay)
        self.max_delay = max_delay
        shape = (features, features)
        self.weight = Parameter(Normal(0.0, features**-0.5)(shape))
        if learn_delays:
            self.delays = Parameter(Uniform(1.0, float(max_delay))(shape), decay=False)
        elif max_delay == 1:
            self.delays = Buffer(ops.ones(shape, dtype="int64"))
        else:
            start = ops.floor(Uniform(1.0, max_delay + 1.0)(shape))
            self.delays = Buffer(ops.astype(ops.clip(start, 1.0, float(max_delay)), "int64"))

    @property
    def num_delays(self) -> int:
        """Largest delay of a synapse, in steps."""
        return self.max_delay

    def set_delays(self, delays: TensorLike) -> None:
        """Replace the delays.

        Args:
            delays: Delays in steps, from 1 to `max_delay`: a number, or (features, features).
                Integers unless delays are learned.
        """
        values = convert_to_tensor(delays, backend=self.delays.backend)
        if values.dtype.kind == "float" and self.delays.dtype.kind != "float":
            raise ArgumentError(
                "RecurrentLIF.set_delays: delays must be integers unless learn_delays=True"
            )
        outside = ops.logical_not(ops.logical_and(values >= 1, values <= self.max_delay))
        if runtime.LOADED[values.backend].truth(ops.any(outside).native):
            raise ArgumentError(
                f"RecurrentLIF.set_delays: delays must be from 1 to max_delay ({self.max_delay}) "
                f"steps, got values from {ops.min(values).item()} to {ops.max(values).item()}"
            )
        self.delays.assign(ops.broadcast_to(values, self.delays.shape))

    def synapse_delays(self) -> Tensor:
        """Return the delays of the synapses in steps, (features, features).

        They are integers, or real numbers through which gradients flow. Subclasses that compute
        delays, for example from distances, override this.
        """
        return self.delays

    def taps(self) -> Tensor:
        """Return the weights by delay, (max_delay, features, features)."""
        weight, delays = upcast_half(self.weight), self.synapse_delays()
        if delays.dtype.kind == "float":
            delays = ops.clip(upcast_half(delays), 1.0, float(self.max_delay))
        return delayed_weights(weight, delays, self.max_delay)


def _check_size(name: str, features: int, max_delay: int) -> None:
    """Raise if the weights by delay would fill the memory of a machine."""
    if features * features * max_delay > MOST_WEIGHTS:
        raise ArgumentError(
            f"{name}: max_delay ({max_delay} steps) is too large for {features} neurons: the "
            f"weights of all delays are at most {MOST_WEIGHTS}. Use shorter delays (in space: a "
            "larger speed or time step), or set max_delay"
        )


def delayed_weights(weight: Tensor, delays: Tensor, max_delay: int) -> Tensor:
    """Return weights by delay, (max_delay, ...), for `ops.spiking_scan`.

    Args:
        weight: Weights of the synapses.
        delays: Their delays in steps, from 1 to `max_delay`: integers, or real numbers, whose
            weights are divided between the two nearest steps.
        max_delay: Number of delays.

    Example:
        >>> from ember_ml.nn.layers.sequence_mixing.spiking.recurrent import delayed_weights
        >>> delayed_weights(tensor.array([8.0]), tensor.array([1.25]), 3)[:, 0].tolist()
        [6.0, 2.0, 0.0]
    """
    slots: Any = index_range(1, max_delay + 1, delays)
    slots = ops.reshape(slots, (max_delay, *[1] * delays.ndim))
    if delays.dtype.kind != "float":
        return ops.where(slots == delays, weight, ops.zeros_like(weight))
    slots = ops.astype(slots, delays.dtype)
    # the last interval includes its end, so that a delay of max_delay has a derivative
    lower = ops.stop_gradient(ops.clip(ops.floor(delays), 1.0, max(1.0, max_delay - 1.0)))
    later = delays - lower
    shares = ops.where(slots == lower, 1.0 - later, ops.where(slots == lower + 1.0, later, 0.0))
    return shares * weight
