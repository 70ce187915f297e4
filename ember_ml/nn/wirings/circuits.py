"""Neural circuit policies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ember_ml.configs.fields import Count, Size, Sizes
from ember_ml.nn.wirings import neuron_graphs
from ember_ml.nn.wirings._fields import Sparsity
from ember_ml.nn.wirings.base import NeuronWiring, WiringError
from ember_ml.registry import register


class _Circuit(NeuronWiring):
    """Layers of inter neurons, a recurrent layer of command neurons, and motor neurons.

    Neurons are numbered in the order motor, command, inter.
    """

    seed: int

    def _set_layers(self, inter: Sequence[int], command: int, motor: int) -> None:
        self.inter_neurons = tuple(inter)
        self.command_neurons = command
        self.motor_neurons = motor
        super().__init__(sum(inter) + command + motor, motor)

    def _set_fanouts(
        self, sensory_fanout: int, inter_fanout: Sequence[int], recurrent: int, motor_fanin: int
    ) -> None:
        self.fanouts = (sensory_fanout, *inter_fanout)
        self.recurrent_command_synapses = recurrent
        self.motor_fanin = motor_fanin
        sizes = [*self.inter_neurons, self.command_neurons]
        self._check_fan("sensory_fanout", sensory_fanout, sizes[0])
        for fanout, size in zip(inter_fanout, sizes[1:], strict=True):
            self._check_fan("inter_fanout", fanout, size)
        self._check_fan("motor_fanin", motor_fanin, self.command_neurons)

    def _check_fan(self, name: str, fan: int, size: int) -> None:
        if fan > size:
            raise WiringError(
                f"{type(self).__name__}: {name}={fan}, but the layer has only {size} neurons"
            )

    @property
    def layers(self) -> list[list[int]]:
        """Neurons of the inter layers, the command layer and the motor layer."""
        sizes = (self.motor_neurons, self.command_neurons, *self.inter_neurons)
        ends = list(itertools.accumulate(sizes))
        motor, command, *inter = (
            list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)
        )
        return [*inter, command, motor]

    def type_of(self, neuron: int) -> str:
        """Return the type of a neuron: "motor", "command" or "inter"."""
        if neuron < self.motor_neurons:
            return "motor"
        return "command" if neuron < self.motor_neurons + self.command_neurons else "inter"

    def connect(self, input_dim: int) -> neuron_graphs.Matrices:
        """Return the synapses between the layers and within the command layer."""
        return neuron_graphs.layered(
            self.layers,
            input_dim,
            self.fanouts,
            self.recurrent_command_synapses,
            self.motor_fanin,
            self.seed,
        )


@register("wirings/ncp")
class NCP(_Circuit):
    """Neural circuit policy: inputs, inter neurons, command neurons and motor neurons.

    Args:
        inter_neurons: Number of inter neurons; several numbers for several layers.
        command_neurons: Number of command neurons.
        motor_neurons: Number of motor neurons, which are the outputs.
        sensory_fanout: Number of inter neurons that an input connects to.
        inter_fanout: Number of neurons of the next layer that an inter neuron connects to: one for
            all inter layers, or one per layer.
        recurrent_command_synapses: Number of synapses drawn among the command neurons.
        motor_fanin: Number of command neurons that connect to a motor neuron.
        seed: Seed of the synapses and their polarities.

    Reference: Lechner et al., "Neural circuit policies enabling auditable autonomy", 2020.

    Example:
        >>> wiring = nn.wirings.NCP(10, 10, 8, 6, 6, 4, 6).build(8)
        >>> wiring.synapse_count, wiring.sensory_synapse_count
        (112, 48)
    """

    def __init__(
        self,
        inter_neurons: Sizes,
        command_neurons: Size,
        motor_neurons: Size,
        sensory_fanout: Size,
        inter_fanout: Sizes,
        recurrent_command_synapses: Count,
        motor_fanin: Size,
        seed: Count = 22222,
    ) -> None:
        self.seed = seed
        self._set_layers(_as_tuple(inter_neurons), command_neurons, motor_neurons)
        fanouts = _as_tuple(inter_fanout)
        fanouts = fanouts * len(self.inter_neurons) if len(fanouts) == 1 else fanouts
        if len(fanouts) != len(self.inter_neurons):
            raise WiringError(
                f"NCP: inter_fanout={fanouts} does not match inter_neurons={self.inter_neurons}; "
                "pass one number, or one per layer"
            )
        self._set_fanouts(sensory_fanout, fanouts, recurrent_command_synapses, motor_fanin)


@register("wirings/auto_ncp", aliases=["autoncp"])
class AutoNCP(_Circuit):
    """Neural circuit policy of a given size and sparsity.

    Args:
        units: Number of neurons.
        output_size: Number of output neurons, below units - 2.
        sparsity_level: Fraction of the synapses between two layers that is omitted, 0.1 to 0.9.
        seed: Seed of the synapses and their polarities.
        inter_layers: Number of layers of inter neurons.

    Example:
        >>> nn.wirings.AutoNCP(28, 10).build(8).synapse_count
        70
    """

    def __init__(
        self,
        units: Size,
        output_size: Size,
        sparsity_level: Sparsity = 0.5,
        seed: Count = 22222,
        inter_layers: Size = 1,
    ) -> None:
        if output_size >= units - 2:
            raise WiringError(
                f"AutoNCP: output_size={output_size} must be below units - 2 = {units - 2}"
            )
        self.seed = seed
        density = 1.0 - sparsity_level
        command = max(int(0.4 * (units - output_size)), 1)
        inter = _split(units - output_size - command, inter_layers)
        self._set_layers(inter, command, output_size)
        following = [*inter[1:], command]
        self._set_fanouts(
            max(int(inter[0] * density), 1),
            [max(int(size * density), 1) for size in following],
            max(int(command * density * 2), 1),
            max(int(command * density), 1),
        )


def _as_tuple(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _split(count: int, parts: int) -> list[int]:
    """Split a count into parts that differ by at most one."""
    if parts > count:
        raise WiringError(f"AutoNCP: inter_layers={parts} exceeds the {count} inter neurons")
    return [count // parts + (at < count % parts) for at in range(parts)]
