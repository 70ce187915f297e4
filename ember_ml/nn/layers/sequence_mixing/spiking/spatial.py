"""Spiking neurons with positions in space, and delays that follow from their distances."""

from __future__ import annotations

from typing import Any, NoReturn

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import (
    Count,
    EmbeddingField,
    NonNegative,
    Positive,
    Probability,
    Size,
    SurrogateField,
)
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.spiking.base import Reset
from ember_ml.nn.layers.sequence_mixing.spiking.recurrent import RecurrentLIF, delayed_weights
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.space.network import SpatialNetwork, all_connections, embedding_of
from ember_ml.nn.space.wiring_cost import WiringCost
from ember_ml.registry import register


@register("layers/spatial_lif")
class SpatialLIF(SpatialNetwork, RecurrentLIF):  # type: ignore[misc]  # positions: never None
    r"""Recurrent spiking neurons in space: distant neurons hear each other later, and pay for it.

    .. math::
        v'_{t,i} = \beta v_{t-1,i} + x_{t,i} + \sum_j W_{ij} \, z_{t-d_{ij},j}, \quad
        d_{ij} = \max(1, \lceil D_{ij} / (s \, \Delta t) \rceil)

    Spikes and resets are those of `LIF`. If the positions are learnable, delays are real numbers:
    a connection then transmits a mixture of the spikes at the two nearest steps, and gradients
    reach the positions.

    In training mode the wiring cost of the recurrent weights is added to the loss
    (`nn.space.WiringCost`). A trainer records it as "wiring_cost".

    Args:
        features: Number of neurons. Each takes one input feature as its current.
        embedding: Positions of the neurons: a `nn.space.SpatialEmbedding` or its config. Default:
            a grid in three dimensions.
        gamma: Factor of the wiring cost; 0 disables it. Default: 0.02.
        distance_power: Exponent of the distances in the cost. Default: 1.
        communicability_power: Exponent of the communicability in the cost. Default: 1.
        speed: Conduction speed s of the axons, in units of distance per unit of time. Default: 1.
        dt: Duration of a time step. Default: 1.
        max_delay: Largest delay in steps; longer ones are shortened to it. Default: that of the
            initial positions, and one more if they are learnable.
        beta: Decay of the voltage in one step, 0 to 1. Default: 0.9.
        threshold: Voltage above which a neuron fires, above 0. Default: 1.
        reset: What a spike does to the voltage: "soft", "hard" or "none"; see `LIF`.
        refractory: Number of steps that a neuron rests after a spike. Default: 0.
        surrogate: Surrogate gradient of spikes, from `ember_ml.nn.surrogates`. Default: "atan".

    Attributes:
        weight: Recurrent weights before pruning, (features, features): `weight[i, j]` from neuron j
            to neuron i. `recurrent_weight()` has zeros for pruned connections.

    Shape: (batch, time, features) -> (batch, time, features), zeros and ones. The state is that of
    `RecurrentLIF`.

    Example:
        >>> layer = nn.layers.SpatialLIF(8, speed=0.5)
        >>> layer(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
        >>> layer.synapse_delays()[0].tolist()
        [1, 2, 2, 3, 2, 3, 3, 4]
    """

    def __init__(
        self,
        features: Size,
        embedding: EmbeddingField = None,
        gamma: NonNegative = 0.02,
        distance_power: NonNegative = 1.0,
        communicability_power: NonNegative = 1.0,
        speed: Positive = 1.0,
        dt: Positive = 1.0,
        max_delay: Size | None = None,
        beta: Probability = 0.9,
        threshold: Positive = 1.0,
        reset: Reset = "soft",
        refractory: Count = 0,
        surrogate: SurrogateField = "atan",
    ) -> None:
        self.embedding = embedding_of(self, embedding, features)
        self.wiring_cost = WiringCost(gamma, distance_power, communicability_power)
        self.speed = speed
        self.dt = dt
        longest = max_delay or self.embedding.max_delay(speed, dt) + self.embedding.learnable
        super().__init__(features, beta, threshold, reset, refractory, surrogate, max_delay=longest)
        del self.delays  # they follow from the positions
        self.mask = all_connections(features)

    @property
    def recurrent_parameter(self) -> Parameter:
        """Weights of the recurrent connections before pruning, (features, features)."""
        return self.weight

    @property
    def connection_mask(self) -> Buffer:
        """Mask of the recurrent connections: 0 for pruned ones, otherwise 1."""
        return self.mask

    def synapse_delays(self) -> Tensor:
        """Return the delays of the connections in steps, (features, features).

        They are integers, or real numbers if the positions are learnable.
        """
        delays = self.embedding.delays(self.speed, self.dt)
        return ops.clip(delays, 1, self.max_delay)

    def set_delays(self, delays: TensorLike) -> NoReturn:
        """Raise an ArgumentError: delays follow from the positions."""
        raise ArgumentError(
            "SpatialLIF.set_delays: delays follow from positions and speed; change "
            "embedding.positions or speed, or use RecurrentLIF"
        )

    def taps(self) -> Tensor:
        """Return the weights by delay, (max_delay, features, features)."""
        weight = upcast_half(self.recurrent_weight())
        return delayed_weights(weight, self.synapse_delays(), self.max_delay)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, state: State | None = None) -> Any:
        """Return the spikes; with a state, also the state after the last position.

        Args:
            x: Input currents, (batch, time, features).
            mask: Padding mask, (batch, time), False for padding. With a state, padding comes last.
            state: State before the first position. Default: zeros.
        """
        self.report_cost()
        return super().forward(x, mask, state=state)

    def _check_delays(self, x: Tensor, state: State | None) -> None:
        """Raise if no spike reaches another neuron within a whole sequence.

        Unlike delays that are chosen one by one, some of those in space may exceed a sequence.
        """
        if state is not None or self.max_delay <= x.shape[1] or self.features == 1:
            return
        delays = self.synapse_delays()
        nearest = ops.min(ops.where(self.distances() > 0.0, delays, self.max_delay))
        is_silent = nearest > max(1, x.shape[1])
        if runtime.LOADED[is_silent.backend].truth(is_silent.native):
            raise ArgumentError(
                f"SpatialLIF: the smallest delay between two neurons ({float(nearest):g} steps) is "
                f"longer than the sequence ({x.shape[1]} steps); no spike reaches another neuron. "
                f"Pass a longer sequence, or a larger speed than {self.speed:g}"
            )
