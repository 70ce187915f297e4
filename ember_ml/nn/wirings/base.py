"""The base of the wirings of neurons."""

from __future__ import annotations

import copy
from typing import Any, Self

from ember_ml._core.errors import EmberError
from ember_ml.nn.wirings import _reach, neuron_graphs


class WiringError(EmberError, ValueError):
    """A synapse that cannot be, or a wiring that does not fit."""


class NeuronWiring:
    """Which neurons have synapses to which, and whether these excite (1) or inhibit (-1).

    A wiring is built for a number of inputs by `build`; the layer that uses it does so, on a copy
    of its own. `adjacency` (units, units) and `sensory_adjacency` (inputs, units) are host arrays,
    [source, destination]. The outputs are the first `output_dim` neurons.

    Subclasses write `connect`, and say of what layers they are made if there are several.

    Args:
        units: how many neurons there are.
        output_dim: how many of them are outputs; all if not given.

    Example:
        >>> wiring = nn.wirings.NeuronWiring(3, 1)
        >>> wiring.add_synapse(2, 0, -1)
        >>> wiring.build(2).add_sensory_synapse(1, 2, 1)
        >>> wiring.synapse_count, wiring.sensory_synapse_count
        (1, 1)
    """

    config: Any = None
    """What it was built by, if its class is registered."""

    def __init__(self, units: int, output_dim: int | None = None) -> None:
        self.units = units
        self.output_dim = units if output_dim is None else output_dim
        if not 1 <= self.output_dim <= units:
            raise WiringError(
                f"{type(self).__name__}: output_dim={output_dim} must be from 1 to units={units}"
            )
        self.input_dim: int | None = None
        self.adjacency = neuron_graphs.unconnected(units, units)
        self.sensory_adjacency: Any = None
        self._added: dict[tuple[int, int], int] = {}

    def connect(self, input_dim: int) -> tuple[Any, Any]:
        """The synapses among the neurons and those of the inputs, as matrices."""
        return self.adjacency, neuron_graphs.unconnected(input_dim, self.units)

    def build(self, input_dim: int) -> Self:
        """Make the synapses for so many inputs; a second time changes nothing."""
        if self.input_dim is None:
            self.adjacency, self.sensory_adjacency = self.connect(input_dim)
            self.input_dim = input_dim
            for synapse, polarity in self._added.items():
                self.adjacency[synapse] = polarity
        if self.input_dim != input_dim:
            raise WiringError(
                f"{type(self).__name__}: built for {self.input_dim} inputs, not for {input_dim}"
            )
        return self

    @property
    def is_built(self) -> bool:
        """Whether the number of inputs is known."""
        return self.input_dim is not None

    def copy(self) -> Self:
        """Another wiring with the same synapses."""
        return copy.deepcopy(self)

    def add_synapse(self, src: int, dest: int, polarity: int) -> None:
        """Add a synapse between two neurons, or change its sign."""
        self._check("add_synapse", src, self.units, dest, polarity)
        self.adjacency[src, dest] = self._added[src, dest] = polarity

    def add_sensory_synapse(self, src: int, dest: int, polarity: int) -> None:
        """Add a synapse from an input to a neuron, or change its sign."""
        if self.input_dim is None:
            raise WiringError(
                f"{type(self).__name__}.add_sensory_synapse: call build(input_dim) first"
            )
        self._check("add_sensory_synapse", src, self.input_dim, dest, polarity)
        self.sensory_adjacency[src, dest] = polarity

    def _check(self, name: str, src: int, sources: int, dest: int, polarity: int) -> None:
        where = f"{type(self).__name__}.{name}({src}, {dest}, {polarity})"
        if not 0 <= src < sources:
            raise WiringError(f"{where}: the source must be from 0 to {sources - 1}")
        if not 0 <= dest < self.units:
            raise WiringError(f"{where}: the destination must be from 0 to {self.units - 1}")
        if polarity not in (-1, 1):
            raise WiringError(f"{where}: the polarity must be 1 or -1")

    @property
    def num_layers(self) -> int:
        """Into how many layers the neurons are parted."""
        return len(self.layers)

    @property
    def layers(self) -> list[list[int]]:
        """The neurons of each layer, from the inputs to the outputs."""
        return [list(range(self.units))]

    def type_of(self, neuron: int) -> str:
        """What a neuron is called: "motor" for the outputs, "command", "inter"."""
        return "motor" if neuron < self.output_dim else "inter"

    @property
    def synapse_count(self) -> int:
        """How many synapses there are among the neurons."""
        return len(self.synapses())

    @property
    def sensory_synapse_count(self) -> int:
        """How many synapses there are from the inputs."""
        return len(self.sensory_synapses())

    def synapses(self) -> list[tuple[int, int, int]]:
        """(source, destination, polarity) of the synapses among the neurons."""
        return list(zip(*neuron_graphs.synapses(self.adjacency), strict=True))

    def sensory_synapses(self) -> list[tuple[int, int, int]]:
        """(input, destination, polarity) of the synapses from the inputs."""
        self._need_build("sensory_synapses")
        return list(zip(*neuron_graphs.synapses(self.sensory_adjacency), strict=True))

    def _need_build(self, name: str) -> None:
        if self.sensory_adjacency is None:
            raise WiringError(f"{type(self).__name__}.{name}: call build(input_dim) first")

    def unreached(self) -> list[int]:
        """The neurons that no input leads to, directly or through others."""
        self._need_build("unreached")
        seen = {dest for _, dest, _ in self.sensory_synapses()}
        return sorted(set(range(self.units)) - _reach.closure(seen, self.synapses()))

    def unused(self) -> list[int]:
        """The neurons that lead to no output, directly or through others."""
        against = [(dest, src, sign) for src, dest, sign in self.synapses()]
        return sorted(set(range(self.units)) - _reach.closure(set(range(self.output_dim)), against))

    def to_networkx(self, sensory: bool = True) -> Any:
        """A networkx.DiGraph: nodes "neuron_0" ... with neuron_type, edges with polarity.

        Args:
            sensory: whether the inputs are in it too, as "sensory_0" ...
        """
        from ember_ml.nn.wirings import _drawing

        if sensory:
            self._need_build("to_networkx")
        return _drawing.graph(self, sensory)

    def draw(self, axes: Any = None) -> Any:
        """Draw it with matplotlib: layers by colour, inhibiting synapses dashed.

        Args:
            axes: where to draw; a new figure if not given.

        Returns:
            The axes.
        """
        from ember_ml.nn.wirings import _drawing

        self._need_build("draw")
        return _drawing.draw(self, axes)

    def __repr__(self) -> str:
        built = "" if self.input_dim is None else f", input_dim={self.input_dim}"
        return f"{type(self).__name__}(units={self.units}, output_dim={self.output_dim}{built})"
