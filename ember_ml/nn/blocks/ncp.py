"""The blocks of a neural circuit policy."""

from __future__ import annotations

from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.blocks.ncp import HiddenBlockConfig, InputBlockConfig, OutputBlockConfig
from ember_ml.nn.layers.sequence_mixing.recurrent import LTC, Recurrent, WiredCfC
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.nn.wirings import NeuronWiring, WiringError
from ember_ml.registry import register


class _CircuitBlock(SequenceModule):
    """A part of the neurons of a circuit, which `wire` gives it."""

    name: str
    role: str
    in_features: int | None = None
    out_features: int | None = None

    def wire(self, wiring: NeuronWiring, in_features: int) -> None:
        """Take a part of a circuit.

        Args:
            wiring: the neurons of the part, all of which are outputs, and their synapses.
            in_features: how many neurons, or inputs, there are to read.
        """
        raise NotImplementedError

    def check_wired(self) -> None:
        """Raise an error if the block has no neurons yet."""
        if self.in_features is None:
            raise WiringError(
                f"{type(self).__name__} {self.name!r} is not wired: add it to an NCPWiring and "
                "call connect_ncp()"
            )


@register("blocks/input", config=InputBlockConfig)
class InputBlock(_CircuitBlock):
    """The inputs of a neural circuit policy: each has a gain and a shift.

    Args:
        name: what it is called in a wiring.

    Example:
        >>> from ember_ml.nn.blocks.ncp import InputBlock
        >>> block = InputBlock("eyes")
        >>> block.wire(nn.wirings.CustomWiring(3), 3)
        >>> block(ops.ones((1, 2, 3))).shape
        (1, 2, 3)
    """

    role = "input"
    gain: Parameter
    shift: Parameter

    def __init__(self, name: str = "input") -> None:
        self.name = name

    def wire(self, wiring: NeuronWiring, in_features: int) -> None:
        """Take as many inputs as there are neurons in the wiring."""
        self.in_features, self.out_features = in_features, wiring.units
        self.gain = Parameter(ops.ones((in_features,)), decay=False)
        self.shift = Parameter(ops.zeros((in_features,)), decay=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The inputs, scaled and shifted."""
        self.check_wired()
        if x.shape[-1] != self.in_features:
            raise ShapeError(
                f"InputBlock {self.name!r} takes {self.in_features} features; the input has the "
                f"shape {x.shape}"
            )
        return x * self.gain + self.shift

    def initial_state(self, batch: int) -> State:
        """None is needed."""
        return ()

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The inputs of one position."""
        return self.forward(x), state


class _Neurons(_CircuitBlock):
    """Neurons with synapses, in continuous time."""

    uses_timespans = True
    output_mapping: Literal["affine", "none"] = "none"
    layer: Recurrent

    def __init__(self, name: str, cell: str) -> None:
        self.name = name
        self.cell = cell

    def wire(self, wiring: NeuronWiring, in_features: int) -> None:
        """Make a layer of the neurons."""
        if self.cell == "ltc":
            self.layer = LTC(in_features, wiring, "none", self.output_mapping)
        else:
            self.layer = WiredCfC(in_features, wiring)
        self.in_features, self.out_features = in_features, wiring.units

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The potentials of the neurons after each position."""
        self.check_wired()
        return self.layer(x, mask, timespans)

    def initial_state(self, batch: int) -> State:
        """The potentials before the first position: zeros."""
        self.check_wired()
        return self.layer.initial_state(batch)

    def step(self, x: Tensor, state: State, timespan: Any = 1.0) -> tuple[Tensor, State]:
        """The potentials after one position."""
        self.check_wired()
        return self.layer.step(x, state, timespan)


@register("blocks/hidden", config=HiddenBlockConfig)
class HiddenBlock(_Neurons):
    """Inter or command neurons of a neural circuit policy, or both.

    Args:
        name: what it is called in a wiring.
        cell: what a neuron is: "ltc", a liquid time-constant one, or "cfc", its closed form, whose
            synapses within the block are all there can be.

    Example:
        >>> from ember_ml.nn.blocks.ncp import HiddenBlock
        >>> block = HiddenBlock()
        >>> block.wire(nn.wirings.CustomWiring(2, None, [(0, 1, 1)], [(0, 0, 1)]), 1)
        >>> block(ops.ones((1, 4, 1))).shape
        (1, 4, 2)
    """

    role = "hidden"

    def __init__(self, name: str = "hidden", cell: str = "ltc") -> None:
        super().__init__(name, cell)


@register("blocks/output", config=OutputBlockConfig)
class OutputBlock(_Neurons):
    """The motor neurons of a neural circuit policy; with "ltc", each has a gain and a shift.

    Args:
        name: what it is called in a wiring.
        cell: what a neuron is, as in `HiddenBlock`.
    """

    role = "output"
    output_mapping = "affine"

    def __init__(self, name: str = "output", cell: str = "ltc") -> None:
        super().__init__(name, cell)
