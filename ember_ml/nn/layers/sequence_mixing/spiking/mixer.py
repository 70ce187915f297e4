"""A sequence mixer of spiking neurons between two linear maps."""

from __future__ import annotations

from collections.abc import Mapping

from ember_ml._core.tensor import Tensor
from ember_ml.configs.errors import ConfigError, below
from ember_ml.configs.fields import AnyComponent, Size
from ember_ml.configs.patterns import sized
from ember_ml.nn import sequence_module
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State
from ember_ml.nn.module import Module
from ember_ml.registry import build, register

LEARNED_LIF = {"type": "layers/lif", "learn_beta": True, "learn_threshold": True}
"""Neurons with learned decays and thresholds."""


@register("layers/spiking_mixer")
class SpikingMixer(SequenceMixer):
    r"""Spiking neurons between two linear maps, for patterns of layers.

    .. math:: y = W_{out} \, \mathrm{neuron}(W_{in} x + b_{in}) + b_{out}

    Args:
        features: Number of input and output features.
        neurons: Number of neurons. Default: `features`.
        neuron: Layer of spiking neurons, or its name or config, such as "alif". Default: LIF
            neurons with learned decays and thresholds.

    Shape: (batch, time, features) -> (batch, time, features). The state is that of the neurons.

    Example:
        >>> nn.layers.SpikingMixer(8, neuron="alif")(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self, features: Size, neurons: Size | None = None, neuron: AnyComponent = LEARNED_LIF
    ) -> None:
        self.features = features
        size = neurons or features
        self.in_proj = Dense(features, size)
        self.neuron: Module = build("", sized(neuron, size))
        self.out_proj = Dense(size, features)

    @staticmethod
    def prepare_config(values: dict[str, object]) -> dict[str, object]:
        """Set the number of neurons of a neuron that is given by name."""
        neuron = values.get("neuron", LEARNED_LIF)
        size = values.get("neurons") or values.get("features")
        if not isinstance(neuron, (str, Mapping)) or not isinstance(size, int):
            return values
        try:
            return {**values, "neuron": sized(neuron, size)}
        except ConfigError as error:
            raise ConfigError("neuron", below(error, "neuron")) from None

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example."""
        size: int = getattr(self.neuron, "state_size", 0)
        return size

    def mix(
        self, x: Tensor, mask: Tensor | None, state: State | None
    ) -> tuple[Tensor, State | None]:
        """Return the outputs, and the state after the last position."""
        currents = self.in_proj(x)
        if state is None:
            return self.out_proj(sequence_module.run(self.neuron, currents, mask)), None
        spikes, state = sequence_module.extend(self.neuron, currents, state, mask)
        return self.out_proj(spikes), state

    def initial_state(self, batch: int) -> State:
        """Return the state of the neurons before the first position."""
        return sequence_module.initial_state(self.neuron, batch)
