"""The base class of the wirings of neurons."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ember_ml._core.errors import EmberError
from ember_ml.nn.wirings import neuron_graphs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class WiringError(EmberError, ValueError):
    """An invalid synapse, connection or wiring."""


class NeuronWiring:
    """Graph of neurons: which neurons have synapses, excitatory (1) or inhibitory (-1).

    `build` creates the synapses for a number of inputs; a layer does so on its own copy of the
    wiring. `adjacency` (units, units) and `sensory_adjacency` (inputs, units) are NumPy arrays
    indexed by [source, destination]. The outputs are the first `output_dim` neurons.

    Subclasses define `connect`, and `layers` if there are several.

    Args:
        units: Number of neurons.
        output_dim: Number of output neurons. Default: all.

    Example:
        >>> wiring = nn.wirings.NeuronWiring(3, 1)
        >>> wiring.add_synapse(2, 0, -1)
        >>> wiring.build(2).add_sensory_synapse(1, 2, 1)
        >>> wiring.synapse_count, wiring.sensory_synapse_count
        (1, 1)
    """

    config: Any = None
    """Config that the wiring was created from, if its class is registered."""

    def __init__(self, units: int, output_dim: int | None = None) -> None:
        self.units = units
        self.output_dim = units if output_dim is None else output_dim
        if not 1 <= self.output_dim <= units:
            raise WiringError(
                f"{type(self).__name__}: output_dim={output_dim} must be from 1 to units={units}"
            )
        self.input_dim: int | None = None
        self.adjacency = neuron_graphs.unconnected(units, units)
        self.sensory_adjacency: Any = None  # an array once the wiring is built
        self._added: dict[tuple[int, int], int] = {}

    def connect(self, input_dim: int) -> neuron_graphs.Matrices:
        """Return the adjacency matrices of the neurons and of the inputs.

        Args:
            input_dim: Number of inputs.
        """
        return self.adjacency, neuron_graphs.unconnected(input_dim, self.units)

    def build(self, input_dim: int) -> Self:
        """Create the synapses, and return the wiring; a second call changes nothing.

        Args:
            input_dim: Number of inputs.
        """
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
        """Return a copy of the wiring."""
        return copy.deepcopy(self)

    def add_synapse(self, src: int, dest: int, polarity: int) -> None:
        """Add a synapse between two neurons, or change its polarity.

        Args:
            src: Source neuron.
            dest: Destination neuron.
            polarity: 1 for excitatory, -1 for inhibitory.
        """
        self._check("add_synapse", src, self.units, dest, polarity)
        self.adjacency[src, dest] = self._added[src, dest] = polarity

    def add_sensory_synapse(self, src: int, dest: int, polarity: int) -> None:
        """Add a synapse from an input to a neuron, or change its polarity.

        Args:
            src: Input.
            dest: Destination neuron.
            polarity: 1 for excitatory, -1 for inhibitory.
        """
        sensory = self._sensory("add_sensory_synapse")
        self._check("add_sensory_synapse", src, len(sensory), dest, polarity)
        sensory[src, dest] = polarity

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
        """Number of layers of neurons."""
        return len(self.layers)

    @property
    def layers(self) -> list[list[int]]:
        """Neurons of each layer, from the inputs to the outputs."""
        return [list(range(self.units))]

    def type_of(self, neuron: int) -> str:
        """Return the type of a neuron: "motor" for outputs, "command" or "inter"."""
        return "motor" if neuron < self.output_dim else "inter"

    @property
    def synapse_count(self) -> int:
        """Number of synapses among the neurons."""
        return len(self.synapses())

    @property
    def sensory_synapse_count(self) -> int:
        """Number of synapses from the inputs."""
        return len(self.sensory_synapses())

    def synapses(self) -> list[tuple[int, int, int]]:
        """Return (source, destination, polarity) of the synapses among the neurons."""
        return list(neuron_graphs.synapses(self.adjacency))

    def sensory_synapses(self) -> list[tuple[int, int, int]]:
        """Return (input, destination, polarity) of the synapses from the inputs."""
        return list(neuron_graphs.synapses(self._sensory("sensory_synapses")))

    def _sensory(self, method: str) -> np.ndarray:
        """Return the sensory adjacency, or raise an error if the wiring is not built."""
        sensory: np.ndarray | None = self.sensory_adjacency
        if sensory is None:
            raise WiringError(f"{type(self).__name__}.{method}: call build(input_dim) first")
        return sensory

    def unreached(self) -> list[int]:
        """Return the neurons that no input reaches, directly or through other neurons."""
        self._sensory("unreached")
        start = {dest for _, dest, _ in self.sensory_synapses()}
        reached = neuron_graphs.reachable(start, self.synapses())
        return sorted(set(range(self.units)) - reached)

    def unused(self) -> list[int]:
        """Return the neurons that reach no output, directly or through other neurons."""
        reversed_synapses = [(dest, src, sign) for src, dest, sign in self.synapses()]
        used = neuron_graphs.reachable(range(self.output_dim), reversed_synapses)
        return sorted(set(range(self.units)) - used)

    def to_networkx(self, sensory: bool = True) -> Any:
        """Return a networkx.DiGraph: nodes "neuron_0" ... with neuron_type, edges with polarity.

        Args:
            sensory: Whether to include the inputs, as "sensory_0" ...
        """
        from ember_ml.nn.wirings import _drawing

        if sensory:
            self._sensory("to_networkx")
        return _drawing.graph(self, sensory)

    def draw(self, axes: Axes | None = None) -> Axes:
        """Draw the wiring with matplotlib, and return the axes.

        Colors show the types of the neurons; inhibitory synapses are dashed.

        Args:
            axes: Axes to draw on. Default: those of a new figure.
        """
        from ember_ml.nn.wirings import _drawing

        self._sensory("draw")
        return _drawing.draw(self, axes)

    def __repr__(self) -> str:
        built = "" if self.input_dim is None else f", input_dim={self.input_dim}"
        return f"{type(self).__name__}(units={self.units}, output_dim={self.output_dim}{built})"
