"""Wirings without layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml.configs import wirings as configs
from ember_ml.nn.wirings import neuron_graphs
from ember_ml.nn.wirings.base import NeuronWiring
from ember_ml.registry import register


@register("wirings/custom", config=configs.CustomWiringConfig)
class CustomWiring(NeuronWiring):
    """Synapses given one by one.

    Args:
        units: how many neurons there are.
        output_dim: how many of them are outputs; all if not given.
        synapses: (source, destination, polarity) among the neurons.
        sensory_synapses: (input, destination, polarity) from the inputs.

    Example:
        >>> nn.wirings.CustomWiring(2, 1, [(1, 0, -1)], [(0, 1, 1)]).build(1).unreached()
        []
    """

    def __init__(
        self,
        units: int,
        output_dim: int | None = None,
        synapses: Sequence[tuple[int, int, int]] = (),
        sensory_synapses: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        super().__init__(units, output_dim)
        self._sensory = tuple(sensory_synapses)
        for src, dest, polarity in synapses:
            self.add_synapse(src, dest, polarity)

    def connect(self, input_dim: int) -> tuple[Any, Any]:
        """The synapses that were given."""
        matrix = neuron_graphs.unconnected(input_dim, self.units)
        for src, dest, polarity in self._sensory:
            self._check("build", src, input_dim, dest, polarity)
            matrix[src, dest] = polarity
        return self.adjacency, matrix


@register("wirings/fully_connected", config=configs.FullyConnectedConfig, aliases=["full"])
class FullyConnected(NeuronWiring):
    """Every synapse there can be; two of three excite.

    Args:
        units: how many neurons there are.
        output_dim: how many of them are outputs; all if not given.
        erev_init_seed: of the signs.
        self_connections: whether neurons have synapses to themselves.

    Example:
        >>> nn.wirings.FullyConnected(8, 4).build(3)
        FullyConnected(units=8, output_dim=4, input_dim=3)
    """

    def __init__(
        self,
        units: int,
        output_dim: int | None = None,
        erev_init_seed: int = 1111,
        self_connections: bool = True,
    ) -> None:
        super().__init__(units, output_dim)
        self.erev_init_seed = erev_init_seed
        self.self_connections = self_connections
        self.adjacency = self.connect(0)[0]

    def connect(self, input_dim: int) -> tuple[Any, Any]:
        """All synapses."""
        return neuron_graphs.fully_connected(
            self.units, input_dim, self.erev_init_seed, self.self_connections
        )


@register("wirings/random", config=configs.RandomConfig)
class Random(NeuronWiring):
    """A share of the synapses there can be, chosen at random; two of three excite.

    Args:
        units: how many neurons there are.
        output_dim: how many of them are outputs; all if not given.
        sparsity_level: the share of the synapses that are left out, below 1.
        random_seed: of the choice and the signs.

    Example:
        >>> nn.wirings.Random(16, 2, sparsity_level=0.75).synapse_count
        64
    """

    def __init__(
        self,
        units: int,
        output_dim: int | None = None,
        sparsity_level: float = 0.0,
        random_seed: int = 1111,
    ) -> None:
        super().__init__(units, output_dim)
        self.sparsity_level = sparsity_level
        self.random_seed = random_seed
        self.adjacency = self.connect(0)[0]

    def connect(self, input_dim: int) -> tuple[Any, Any]:
        """The synapses that were chosen."""
        return neuron_graphs.random(self.units, input_dim, self.sparsity_level, self.random_seed)
