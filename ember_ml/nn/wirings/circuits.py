"""Neural circuit policies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ember_ml.configs import wirings as configs
from ember_ml.nn.wirings import neuron_graphs
from ember_ml.nn.wirings.base import NeuronWiring, WiringError
from ember_ml.registry import register


class _Circuit(NeuronWiring):
    """Layers of inter neurons, then command neurons with synapses among them, then motor neurons.

    The motor neurons have the first numbers, then come the command neurons, then the inter ones.
    """

    seed: int

    def _lay(self, inter: Sequence[int], command: int, motor: int) -> None:
        self.inter_neurons = tuple(inter)
        self.command_neurons = command
        self.motor_neurons = motor
        super().__init__(sum(inter) + command + motor, motor)

    def _wire(
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
        """The inter layers, the command layer, the motor layer."""
        sizes = (self.motor_neurons, self.command_neurons, *self.inter_neurons)
        ends = list(itertools.accumulate(sizes))
        motor, command, *inter = (
            list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)
        )
        return [*inter, command, motor]

    def type_of(self, neuron: int) -> str:
        """What a neuron is called: "motor", "command" or "inter"."""
        if neuron < self.motor_neurons:
            return "motor"
        return "command" if neuron < self.motor_neurons + self.command_neurons else "inter"

    def connect(self, input_dim: int) -> tuple[Any, Any]:
        """The synapses between the layers, and those among the command neurons."""
        return neuron_graphs.layered(
            self.layers,
            input_dim,
            self.fanouts,
            self.recurrent_command_synapses,
            self.motor_fanin,
            self.seed,
        )


@register("wirings/ncp", config=configs.NCPConfig)
class NCP(_Circuit):
    """A neural circuit policy: inputs, inter neurons, command neurons, motor neurons.

    Args:
        inter_neurons: how many there are; several numbers make several layers.
        command_neurons: how many there are.
        motor_neurons: how many there are; they are the outputs.
        sensory_fanout: into how many inter neurons an input leads.
        inter_fanout: into how many neurons of the next layer an inter neuron leads; one number, or
            one for each inter layer.
        recurrent_command_synapses: how many synapses are drawn among the command neurons.
        motor_fanin: how many command neurons a motor neuron listens to.
        seed: of the synapses and their signs.

    Reference: Lechner et al., "Neural circuit policies enabling auditable autonomy", 2020.

    Example:
        >>> wiring = nn.wirings.NCP(10, 10, 8, 6, 6, 4, 6).build(8)
        >>> wiring.synapse_count, wiring.sensory_synapse_count
        (112, 48)
    """

    def __init__(
        self,
        inter_neurons: int | Sequence[int],
        command_neurons: int,
        motor_neurons: int,
        sensory_fanout: int,
        inter_fanout: int | Sequence[int],
        recurrent_command_synapses: int,
        motor_fanin: int,
        seed: int = 22222,
    ) -> None:
        self.seed = seed
        self._lay(_several(inter_neurons), command_neurons, motor_neurons)
        fanouts = _several(inter_fanout)
        fanouts = fanouts * len(self.inter_neurons) if len(fanouts) == 1 else fanouts
        if len(fanouts) != len(self.inter_neurons):
            raise WiringError(
                f"NCP: inter_fanout={fanouts} for the inter layers {self.inter_neurons}; give one "
                "number, or one a layer"
            )
        self._wire(sensory_fanout, fanouts, recurrent_command_synapses, motor_fanin)


@register("wirings/auto_ncp", config=configs.AutoNCPConfig, aliases=["autoncp"])
class AutoNCP(_Circuit):
    """A neural circuit policy of a given size.

    Args:
        units: how many neurons there are.
        output_size: how many of them are outputs: fewer than units - 2.
        sparsity_level: the share of the synapses between two layers that are left out, 0.1 to 0.9.
        seed: of the synapses and their signs.
        inter_layers: over how many layers the inter neurons are spread.

    Example:
        >>> nn.wirings.AutoNCP(28, 10).build(8).synapse_count
        70
    """

    def __init__(
        self,
        units: int,
        output_size: int,
        sparsity_level: float = 0.5,
        seed: int = 22222,
        inter_layers: int = 1,
    ) -> None:
        if output_size >= units - 2:
            raise WiringError(
                f"AutoNCP: output_size={output_size} must be below units - 2 = {units - 2}"
            )
        self.seed = seed
        density = 1.0 - sparsity_level
        command = max(int(0.4 * (units - output_size)), 1)
        inter = _parted(units - output_size - command, inter_layers)
        self._lay(inter, command, output_size)
        following = [*inter[1:], command]
        self._wire(
            max(int(inter[0] * density), 1),
            [max(int(size * density), 1) for size in following],
            max(int(command * density * 2), 1),
            max(int(command * density), 1),
        )


def _several(value: int | Sequence[int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _parted(count: int, parts: int) -> list[int]:
    """The count in parts that differ by one at most."""
    if parts > count:
        raise WiringError(f"AutoNCP: inter_layers={parts} for {count} inter neurons")
    return [count // parts + (at < count % parts) for at in range(parts)]
