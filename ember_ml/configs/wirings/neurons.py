"""Configs of the wirings of neurons."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ember_ml.configs.base import Config
from ember_ml.configs.fields import Below1, Count, Flag, Size, Sizes

Synapse = tuple[Count, Count, Annotated[int, Field(strict=True)]]
"""Source, destination, and 1 if it excites or -1 if it inhibits."""
Sparsity = Annotated[float, Field(ge=0.1, le=0.9)]


class CustomWiringConfig(Config):
    """Synapses given one by one."""

    component: ClassVar[str] = "wirings/custom"
    units: Size
    output_dim: Size | None = None
    synapses: tuple[Synapse, ...] = ()
    sensory_synapses: tuple[Synapse, ...] = ()


class FullyConnectedConfig(Config):
    """Every synapse there can be."""

    component: ClassVar[str] = "wirings/fully_connected"
    units: Size
    output_dim: Size | None = None
    erev_init_seed: Count = 1111
    self_connections: Flag = True


class RandomConfig(Config):
    """A share of the synapses there can be."""

    component: ClassVar[str] = "wirings/random"
    units: Size
    output_dim: Size | None = None
    sparsity_level: Below1 = 0.0
    random_seed: Count = 1111


class NCPConfig(Config):
    """Inputs, inter neurons, command neurons, motor neurons."""

    component: ClassVar[str] = "wirings/ncp"
    inter_neurons: Sizes
    command_neurons: Size
    motor_neurons: Size
    sensory_fanout: Size
    inter_fanout: Sizes
    recurrent_command_synapses: Count
    motor_fanin: Size
    seed: Count = 22222


class AutoNCPConfig(Config):
    """An NCP of given size and sparsity."""

    component: ClassVar[str] = "wirings/auto_ncp"
    units: Size
    output_size: Size
    sparsity_level: Sparsity = 0.5
    seed: Count = 22222
    inter_layers: Size = 1
