"""Wirings without layers."""

from __future__ import annotations

from ember_ml.configs.fields import Below1, Count, Size
from ember_ml.nn.wirings import neuron_graphs
from ember_ml.nn.wirings._fields import Synapses
from ember_ml.nn.wirings.base import NeuronWiring
from ember_ml.registry import register


@register("wirings/custom")
class CustomWiring(NeuronWiring):
    """Wiring with given synapses.

    Args:
        units: Number of neurons.
        output_dim: Number of output neurons. Default: all.
        synapses: (source, destination, polarity) among the neurons.
        sensory_synapses: (input, destination, polarity) from the inputs.

    Example:
        >>> nn.wirings.CustomWiring(2, 1, [(1, 0, -1)], [(0, 1, 1)]).build(1).unreached()
        []
    """

    def __init__(
        self,
        units: Size,
        output_dim: Size | None = None,
        synapses: Synapses = (),
        sensory_synapses: Synapses = (),
    ) -> None:
        super().__init__(units, output_dim)
        self._sensory_synapses = tuple(sensory_synapses)
        for src, dest, polarity in synapses:
            self.add_synapse(src, dest, polarity)

    def connect(self, input_dim: int) -> neuron_graphs.Matrices:
        """Return the adjacency matrices of the given synapses."""
        matrix = neuron_graphs.unconnected(input_dim, self.units)
        for src, dest, polarity in self._sensory_synapses:
            self._check("build", src, input_dim, dest, polarity)
            matrix[src, dest] = polarity
        return self.adjacency, matrix


@register("wirings/fully_connected", aliases=["full"])
class FullyConnected(NeuronWiring):
    """Wiring with all possible synapses, about two thirds of them excitatory.

    Args:
        units: Number of neurons.
        output_dim: Number of output neurons. Default: all.
        erev_init_seed: Seed of the polarities.
        self_connections: Whether neurons have synapses to themselves.

    Example:
        >>> nn.wirings.FullyConnected(8, 4).build(3)
        FullyConnected(units=8, output_dim=4, input_dim=3)
    """

    def __init__(
        self,
        units: Size,
        output_dim: Size | None = None,
        erev_init_seed: Count = 1111,
        self_connections: bool = True,
    ) -> None:
        super().__init__(units, output_dim)
        self.erev_init_seed = erev_init_seed
        self.self_connections = self_connections
        self.adjacency = self.connect(0)[0]

    def connect(self, input_dim: int) -> neuron_graphs.Matrices:
        """Return adjacency matrices with all synapses."""
        return neuron_graphs.fully_connected(
            self.units, input_dim, self.erev_init_seed, self.self_connections
        )


@register("wirings/random")
class Random(NeuronWiring):
    """Wiring with a random fraction of all synapses, about two thirds of them excitatory.

    Args:
        units: Number of neurons.
        output_dim: Number of output neurons. Default: all.
        sparsity_level: Fraction of the synapses that is omitted, below 1.
        random_seed: Seed of the synapses and their polarities.

    Example:
        >>> nn.wirings.Random(16, 2, sparsity_level=0.75).synapse_count
        64
    """

    def __init__(
        self,
        units: Size,
        output_dim: Size | None = None,
        sparsity_level: Below1 = 0.0,
        random_seed: Count = 1111,
    ) -> None:
        super().__init__(units, output_dim)
        self.sparsity_level = sparsity_level
        self.random_seed = random_seed
        self.adjacency = self.connect(0)[0]

    def connect(self, input_dim: int) -> neuron_graphs.Matrices:
        """Return the adjacency matrices of the sampled synapses."""
        return neuron_graphs.random(self.units, input_dim, self.sparsity_level, self.random_seed)
