"""A layer whose outputs drive spiking neurons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml._core.tensor import Tensor
from ember_ml.configs.errors import ConfigError, Problem, below
from ember_ml.configs.fields import AnyComponent, Size
from ember_ml.configs.patterns import sized
from ember_ml.nn import sequence_module
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State
from ember_ml.nn.module import Module
from ember_ml.registry import build, register

INPUTS = ("in_features", "features", "hidden_size")
"""Names of the number of input features of a layer."""
OUTPUTS = ("out_features", "features", "hidden_size")
"""Names of the number of output features of a layer."""


@register("layers/spiking")
class Spiking(SequenceMixer):
    r"""Spiking neurons whose currents are the outputs of a layer: `neuron(layer(x))`.

    Args:
        layer: Layer that computes the currents: a module, or the name or config of one.
        neuron: Layer of spiking neurons, or its name or config, such as "layers/alif".
            Default: "layers/lif".
        neurons: Number of neurons of a neuron given by name: the number of output features of the
            layer. Default: `layer.out_features` or `layer.features`.

    Shape: (batch, time, in_features) -> (batch, time, neurons), zeros and ones. The state is a
    pair: those of the layer and of the neurons.

    Example:
        >>> layer = nn.layers.Spiking(nn.layers.Dense(3, 4), neuron="layers/alif")
        >>> layer(ops.ones((2, 5, 3))).shape
        (2, 5, 4)
    """

    def __init__(
        self,
        layer: AnyComponent,
        neuron: AnyComponent = "layers/lif",
        neurons: Size | None = None,
    ) -> None:
        self.layer: Module = build("", layer)
        self.neuron: Module = build("", sized(neuron, neurons or _width(self.layer, OUTPUTS)))
        self.features = _width(self.layer, INPUTS) or _width(self.neuron, INPUTS)

    @staticmethod
    def prepare_config(values: dict[str, object]) -> dict[str, object]:
        """Set the number of neurons of a neuron that is given by name."""
        neuron, layer = values.get("neuron", "layers/lif"), values.get("layer")
        if not isinstance(neuron, (str, Mapping)):
            return values
        width = values.get("neurons") or _width(layer, OUTPUTS)
        if not isinstance(width, int):
            raise ConfigError(
                "neurons",
                [
                    Problem(
                        ("neurons",),
                        "the output size of the layer is unknown: pass neurons=...",
                    )
                ],
            )
        try:
            return {**values, "neuron": sized(neuron, width)}
        except ConfigError as error:
            raise ConfigError("neuron", below(error, "neuron")) from None

    @property
    def out_features(self) -> int:
        """Number of neurons."""
        return _width(self.neuron, OUTPUTS)

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether the layer is causal."""
        return sequence_module.all_causal([self.layer, self.neuron])

    def mix(
        self, x: Tensor, mask: Tensor | None, state: State | None
    ) -> tuple[Tensor, State | None]:
        """Return the spikes, and the states after the last position."""
        both = (self.layer, self.neuron)
        if state is None:
            return sequence_module.run_all(both, x, mask), None
        return sequence_module.extend_all(both, x, state, mask)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the spikes at one position, and the next states."""
        self.check_step(x, state)
        return sequence_module.step_all((self.layer, self.neuron), x, state)

    def initial_state(self, batch: int) -> State:
        """Return the states of the layer and of the neurons before the first position."""
        return sequence_module.initial_states((self.layer, self.neuron), batch)


def _width(layer: Any, names: tuple[str, ...]) -> Any:
    """Return the number of input or output features of a module or its description; None."""
    if isinstance(layer, Mapping):
        return next((layer[name] for name in names if name in layer), None)
    widths = (getattr(layer, name, None) for name in names)
    return next((width for width in widths if isinstance(width, int)), None)
