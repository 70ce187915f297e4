"""Blocks that share the neurons of a neural circuit policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from ember_ml.configs.base import Config
from ember_ml.configs.fields import ComponentLike, Count, Size
from ember_ml.nn.module import Module
from ember_ml.nn.wirings._fields import Blocks, Sparsity
from ember_ml.nn.wirings._plan import Plan
from ember_ml.nn.wirings.base import NeuronWiring, WiringError
from ember_ml.nn.wirings.blocks import BlockWiring
from ember_ml.nn.wirings.circuits import AutoNCP
from ember_ml.nn.wirings.plain import CustomWiring
from ember_ml.registry import get, register

_ROLES = ("input", "hidden", "output")
Synapses = list[tuple[int, int, int]]
Parts = dict[str, list[int]]
"""Neurons of each block, except the input block."""


@register("wirings/ncp_blocks")
class NCPWiring(BlockWiring):
    """Blocks that share the neurons of one neural circuit policy, an `AutoNCP`.

    One block holds the inputs, and one the motor neurons, which are the outputs. A single hidden
    block holds all inter and command neurons; several hidden blocks hold one layer each, in order.
    Blocks are connected where synapses lead from one to the other.

    The hidden neurons compute the same as those of one `LTC` layer over the whole `AutoNCP`. In
    such a layer, neurons read each other in every solver step; across blocks, they read the values
    at the end of a position.

    Args:
        num_inputs: Number of inputs.
        num_outputs: Number of motor neurons.
        num_hidden: Number of inter and command neurons.
        sparsity_level: Fraction of the synapses between two layers that is omitted, 0.1 to 0.9.
        seed: Seed of the synapses and their polarities.
        blocks: Blocks by name, or a list of blocks. `add_block` adds more. They are connected at
            once if every role has a block.
        name: Name of the wiring as a block of another wiring.

    Shape: (batch, time, num_inputs) -> (batch, time, num_outputs).

    Reference: Lechner et al., "Neural circuit policies enabling auditable autonomy", 2020.

    Example:
        >>> from ember_ml.nn.blocks.ncp import HiddenBlock, InputBlock, OutputBlock
        >>> wiring = nn.wirings.NCPWiring(num_inputs=4, num_outputs=2, num_hidden=8)
        >>> for block in (InputBlock("input"), HiddenBlock("hidden"), OutputBlock("output")):
        ...     wiring = wiring.add_block(block)
        >>> wiring.connect_ncp()(ops.ones((1, 3, 4))).shape
        (1, 3, 2)
    """

    inputs = ("sensory",)
    merge = "concat"

    def __init__(
        self,
        num_inputs: Size,
        num_outputs: Size,
        num_hidden: Size,
        sparsity_level: Sparsity = 0.5,
        seed: Count = 22222,
        blocks: Blocks = (),
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.num_inputs = num_inputs
        self.num_outputs = num_outputs
        self.num_hidden = num_hidden
        self.sparsity_level = sparsity_level
        self.seed = seed
        self.features = {"sensory": num_inputs}
        self.circuit: NeuronWiring | None = None
        self._add_blocks(blocks)
        if not self._missing():
            self.connect_ncp()

    def add_block(self, block: ComponentLike, name: str | None = None) -> Self:
        """Add a block, and return the wiring.

        Args:
            block: Module with a `role` ("input", "hidden" or "output") and a method `wire`, or its
                name or config.
            name: Name of the block. Default: its attribute `name`.
        """
        if self.circuit is not None:
            raise WiringError("NCPWiring.add_block: the blocks are connected already")
        super().add_block(block, name)
        *_, (key, module) = self.blocks.items()
        role = getattr(module, "role", None)
        if role not in _ROLES or not callable(getattr(module, "wire", None)):
            del self.blocks[key]
            raise WiringError(
                f"NCPWiring.add_block: {key!r} needs a role ({', '.join(_ROLES)}) and a method "
                f"wire(wiring, in_features); its role is {role!r}"
            )
        return self

    def connect(
        self, from_block: str | Module, to_block: str | Module, delayed: bool = False
    ) -> Self:
        """Raise an error: the synapses determine the connections."""
        raise WiringError("NCPWiring.connect: the blocks are connected by connect_ncp()")

    def _of_role(self, role: str) -> list[str]:
        return [name for name, block in self.blocks.items() if getattr(block, "role", "") == role]

    def _missing(self) -> list[str]:
        return [role for role in _ROLES if not self._of_role(role)]

    def connect_ncp(self) -> Self:
        """Draw the synapses, distribute the neurons over the blocks, and return the wiring."""
        self._check_roles()
        units = self.num_hidden + self.num_outputs
        layers = max(len(self._of_role("hidden")) - 1, 1)
        try:
            circuit = AutoNCP(units, self.num_outputs, self.sparsity_level, self.seed, layers)
        except WiringError as error:
            raise WiringError(
                f"NCPWiring.connect_ncp: num_hidden={self.num_hidden} is too few: {error}"
            ) from None
        self.circuit = circuit.build(self.num_inputs)
        self._wire(self._of_role("input")[0], CustomWiring(self.num_inputs), self.num_inputs)
        parts = self._parts(circuit.layers)
        for name in parts:
            self._wire(name, *self._part(name, parts, circuit))
        return self

    def _check_roles(self) -> None:
        where = "NCPWiring.connect_ncp"
        if self.circuit is not None:
            raise WiringError(f"{where}: the blocks are connected already")
        missing = self._missing()
        if missing:
            raise WiringError(f"{where}: there is no {missing[0]} block; add one with add_block")
        for role in ("input", "output"):
            names = self._of_role(role)
            if len(names) > 1:
                raise WiringError(f"{where}: {names[0]!r} and {names[1]!r} are both {role} blocks")

    def _wire(self, name: str, wiring: NeuronWiring, in_features: int) -> None:
        block: Any = self.blocks[name]
        block.wire(wiring, in_features)

    def _parts(self, layers: Sequence[Sequence[int]]) -> Parts:
        """Return the neurons of the hidden blocks and of the output block."""
        hidden = self._of_role("hidden")
        if len(hidden) == 1:
            layers = [[neuron for layer in layers[:-1] for neuron in layer], layers[-1]]
        names = [*hidden, *self._of_role("output")]
        return {name: sorted(layer) for name, layer in zip(names, layers, strict=True)}

    def _part(self, name: str, parts: Parts, circuit: NeuronWiring) -> tuple[NeuronWiring, int]:
        """Connect a block to those it reads; return its wiring and the number of neurons read."""
        sensory: Synapses = []
        read = 0
        for source in self.blocks:
            near = parts.get(source, range(self.num_inputs))
            synapses = circuit.synapses() if source in parts else circuit.sensory_synapses()
            crossing = _between(synapses, near, parts[name])
            if source != name and crossing:
                super().connect(source, name)
                sensory += [(read + src, dest, sign) for src, dest, sign in crossing]
                read += len(near)
        inner = _between(circuit.synapses(), parts[name], parts[name])
        return CustomWiring(len(parts[name]), None, inner, sensory), read

    def make_plan(self) -> Plan:
        """Return the execution plan; raise an error if the blocks are not connected."""
        if self.circuit is None:
            raise WiringError("the blocks are not connected; call connect_ncp() first")
        return super().make_plan()

    @property
    def config(self) -> Config:
        """Config with the current blocks."""
        config: Config = get("wirings/ncp_blocks").config(
            num_inputs=self.num_inputs,
            num_outputs=self.num_outputs,
            num_hidden=self.num_hidden,
            sparsity_level=self.sparsity_level,
            seed=self.seed,
            blocks=self.block_configs(),
            name=self.name,
        )
        return config

    @config.setter
    def config(self, config: Config) -> None:
        """Ignore the original config, which does not know blocks added later."""


def _between(synapses: Synapses, near: Sequence[int], far: Sequence[int]) -> Synapses:
    """Return the synapses from some neurons to others, renumbered within both groups."""
    starts = {neuron: at for at, neuron in enumerate(near)}
    ends = {neuron: at for at, neuron in enumerate(far)}
    return [
        (starts[src], ends[dest], sign)
        for src, dest, sign in synapses
        if src in starts and dest in ends
    ]
