"""Blocks that share the neurons of a neural circuit policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from ember_ml.configs.wirings import NCPWiringConfig
from ember_ml.nn.wirings._plan import Plan
from ember_ml.nn.wirings.base import NeuronWiring, WiringError
from ember_ml.nn.wirings.blocks import BlockWiring
from ember_ml.nn.wirings.circuits import AutoNCP
from ember_ml.nn.wirings.plain import CustomWiring
from ember_ml.registry import register

_ROLES = ("input", "hidden", "output")
Synapses = list[tuple[int, int, int]]
Parts = dict[str, list[int]]
"""The neurons of each block but the input's."""


@register("wirings/ncp_blocks", config=NCPWiringConfig)
class NCPWiring(BlockWiring):
    """Blocks that share the neurons of one neural circuit policy, an `AutoNCP`.

    One block has the inputs, one the motor neurons, which are the outputs; a hidden block has the
    inter and command neurons, and several hidden blocks have the layers of them in order. Blocks
    are connected where synapses lead from one to the other.

    The hidden neurons do what those of one `LTC` layer over the whole `AutoNCP` do. The neurons of
    the other blocks read them as they are at the end of a position, and those of one layer in each
    part of a position as they are then.

    Args:
        num_inputs: how many inputs there are.
        num_outputs: how many motor neurons there are.
        num_hidden: how many inter and command neurons there are.
        sparsity_level: the share of the synapses between two layers that are left out, 0.1 to 0.9.
        seed: of the synapses and their signs.
        blocks: blocks by name, or a list of them; more come by `add_block`. They are connected at
            once if there is one of each role.
        name: what it is called as a block of another wiring.

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
        num_inputs: int,
        num_outputs: int,
        num_hidden: int,
        sparsity_level: float = 0.5,
        seed: int = 22222,
        blocks: Mapping[str, Any] | Sequence[Any] = (),
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

    def add_block(self, block: Any, name: str | None = None) -> Self:
        """Add a block with a `role`, "input", "hidden" or "output", and a method `wire`."""
        if self.circuit is not None:
            raise WiringError("NCPWiring.add_block: the blocks are connected already")
        super().add_block(block, name)
        *_, (key, made) = self.blocks.items()
        role = getattr(made, "role", None)
        if role not in _ROLES or not callable(getattr(made, "wire", None)):
            del self.blocks[key]
            raise WiringError(
                f"NCPWiring.add_block: {key!r} needs a role, of {', '.join(_ROLES)}, and a method "
                f"wire(wiring, in_features); its role is {role!r}"
            )
        return self

    def connect(self, from_block: Any, to_block: Any, delayed: bool = False) -> Self:
        """Refused: the synapses say what is connected."""
        raise WiringError("NCPWiring.connect: its blocks are connected by connect_ncp()")

    def _of_role(self, role: str) -> list[str]:
        return [name for name, block in self.blocks.items() if getattr(block, "role", "") == role]

    def _missing(self) -> list[str]:
        return [role for role in _ROLES if not self._of_role(role)]

    def connect_ncp(self) -> Self:
        """Draw the synapses, part the neurons over the blocks and connect these."""
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
                raise WiringError(f"{where}: {names[0]!r} and {names[1]!r} both are {role} blocks")

    def _wire(self, name: str, wiring: NeuronWiring, in_features: int) -> None:
        block: Any = self.blocks[name]
        block.wire(wiring, in_features)

    def _parts(self, layers: Sequence[Sequence[int]]) -> Parts:
        """The neurons of the hidden blocks and of the output block."""
        hidden = self._of_role("hidden")
        if len(hidden) == 1:
            layers = [[neuron for layer in layers[:-1] for neuron in layer], layers[-1]]
        names = [*hidden, *self._of_role("output")]
        return {name: sorted(layer) for name, layer in zip(names, layers, strict=True)}

    def _part(self, name: str, parts: Parts, circuit: NeuronWiring) -> tuple[NeuronWiring, int]:
        """The neurons of a block, and how many there are to read; the blocks read are connected."""
        sensory: Synapses = []
        read = 0
        for source in self.blocks:
            near = parts.get(source, range(self.num_inputs))
            synapses = circuit.synapses() if source in parts else circuit.sensory_synapses()
            crossing = _placed(synapses, near, parts[name])
            if source != name and crossing:
                super().connect(source, name)
                sensory += [(read + src, dest, sign) for src, dest, sign in crossing]
                read += len(near)
        inner = _placed(circuit.synapses(), parts[name], parts[name])
        return CustomWiring(len(parts[name]), None, inner, sensory), read

    def make_plan(self) -> Plan:
        """The plan; an error if the blocks are not connected."""
        if self.circuit is None:
            raise WiringError("the blocks are not connected; call connect_ncp() first")
        return super().make_plan()

    @property
    def config(self) -> NCPWiringConfig:
        """What it is made of now."""
        return NCPWiringConfig(
            num_inputs=self.num_inputs,
            num_outputs=self.num_outputs,
            num_hidden=self.num_hidden,
            sparsity_level=self.sparsity_level,
            seed=self.seed,
            blocks=self.block_configs(),
            name=self.name,
        )

    @config.setter
    def config(self, config: NCPWiringConfig) -> None:
        """What it was built by says nothing of blocks that were added."""


def _placed(synapses: Synapses, near: Sequence[int], far: Sequence[int]) -> Synapses:
    """The synapses from some neurons to others, by their places among these."""
    starts = {neuron: at for at, neuron in enumerate(near)}
    ends = {neuron: at for at, neuron in enumerate(far)}
    return [
        (starts[src], ends[dest], sign)
        for src, dest, sign in synapses
        if src in starts and dest in ends
    ]
