"""Leaky integrators: neurons that do not fire, as a read-out."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import bool_
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Probability, Size
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing._chunked import zero_state
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding
from ember_ml.nn.layers.sequence_mixing.spiking.base import per_neuron, unit_range
from ember_ml.registry import register


@register("layers/leaky_integrator", aliases=["li"])
class LeakyIntegrator(SequenceMixer):
    r"""Leaky integrators: voltages without spikes, the read-out of a spiking network.

    .. math:: v_t = \beta \odot v_{t-1} + x_t

    Args:
        features: Number of neurons. Each takes one input feature as its current.
        beta: Decay of the voltage in one step, 0 to 1. Default: 0.9.
        learn_beta: Whether `beta` is learned, one value per neuron. Default: False.

    Shape: (batch, time, features) -> (batch, time, features). The state is the voltage, (batch,
    features).

    Example:
        >>> nn.layers.LeakyIntegrator(1, beta=0.5)(ops.ones((1, 3, 1)))[0, :, 0].tolist()
        [1.0, 1.5, 1.75]
    """

    def __init__(self, features: Size, beta: Probability = 0.9, learn_beta: bool = False) -> None:
        self.features = features
        self.beta = per_neuron(features, beta, learn_beta)

    @property
    def out_features(self) -> int:
        """Number of output features."""
        return self.features

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example."""
        return self.features

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the voltages, and the last ones if there is a state."""
        factors = unit_range(self.beta)
        if mask is not None:  # a factor of 1 leaves the voltage unchanged
            factors = ops.where(ops.astype(mask, bool_)[:, :, None], factors, 1.0)
        v, last = ops.linear_recurrence(factors, upcast_half(mask_padding(x, mask)), state)
        return ops.cast(v, x.dtype), None if state is None else last

    def initial_state(self, batch: int) -> Tensor:
        """Return the voltages before the first position: zeros."""
        return zero_state(self.beta, batch, self.features)
