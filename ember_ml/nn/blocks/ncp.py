"""The blocks of a neural circuit policy."""

from __future__ import annotations

from typing import Any, Literal

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.layers.sequence_mixing.recurrent import LTC, Recurrent, WiredCfC
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.nn.wirings import NeuronWiring, WiringError
from ember_ml.registry import register


class _CircuitBlock(SequenceModule):
    """Part of the neurons of a circuit, which `wire` assigns."""

    name: str
    role: str
    in_features: int | None = None
    out_features: int | None = None

    def wire(self, wiring: NeuronWiring, in_features: int) -> None:
        """Assign part of a circuit to the block.

        Args:
            wiring: The neurons of the part, all of them outputs, and their synapses.
            in_features: Number of neurons or inputs that the part reads.
        """
        raise NotImplementedError

    def check_wired(self) -> None:
        """Raise a WiringError if the block has no neurons yet."""
        if self.in_features is None:
            raise WiringError(
                f"{type(self).__name__} {self.name!r} is not wired: add it to an NCPWiring and "
                "call connect_ncp()"
            )


@register("blocks/input")
class InputBlock(_CircuitBlock):
    """Inputs of a neural circuit policy, each with a learned scale and offset.

    Args:
        name: Name of the block in a wiring.

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
        """Create a scale and an offset for each input; see `_CircuitBlock.wire`."""
        self.in_features, self.out_features = in_features, wiring.units
        self.gain = Parameter(ops.ones((in_features,)), decay=False)
        self.shift = Parameter(ops.zeros((in_features,)), decay=False)

    def forward(self, x: Tensor, mask: Tensor | None = None, *, state: State | None = None) -> Any:
        """Return the scaled and shifted inputs, of the shape of `x`; with a state, also the state.

        Args:
            x: Tensor of shape (..., in_features).
            mask: Ignored: the block maps each position by itself.
            state: (): the block has no state.
        """
        self.check_wired()
        if x.shape[-1] != self.in_features:
            raise ShapeError(
                f"InputBlock {self.name!r}: expected {self.in_features} features, got an input of "
                f"shape {x.shape}"
            )
        y = x * self.gain + self.shift
        return y if state is None else (y, state)

    def initial_state(self, batch: int) -> State:
        """Return (): the block has no state."""
        return ()

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the scaled inputs of one position, and the state."""
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
        """Create a recurrent layer of the neurons; see `_CircuitBlock.wire`."""
        if self.cell == "ltc":
            self.layer = LTC(in_features, wiring, "none", self.output_mapping)
        else:
            self.layer = WiredCfC(in_features, wiring)
        self.in_features, self.out_features = in_features, wiring.units

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the potentials after each position; with a state, also those after the last.

        Args:
            x: Tensor of shape (batch, time, in_features).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position. Default: 1.
            state: Potentials before the first position. Default: zeros.
        """
        self.check_wired()
        return self.layer(x, mask, timespans, state=state)

    def initial_state(self, batch: int) -> State:
        """Return the potentials before the first position: zeros."""
        self.check_wired()
        return self.layer.initial_state(batch)

    def step(self, x: Tensor, state: State, timespan: TensorLike = 1.0) -> tuple[Tensor, State]:
        """Return the potentials after one position, and the next state."""
        self.check_wired()
        return self.layer.step(x, state, timespan)


@register("blocks/hidden")
class HiddenBlock(_Neurons):
    """Inter neurons, command neurons, or both, of a neural circuit policy.

    Args:
        name: Name of the block in a wiring.
        cell: Neuron model: "ltc" (liquid time-constant) or "cfc" (its closed form, fully connected
            within the block).

    Example:
        >>> from ember_ml.nn.blocks.ncp import HiddenBlock
        >>> block = HiddenBlock()
        >>> block.wire(nn.wirings.CustomWiring(2, None, [(0, 1, 1)], [(0, 0, 1)]), 1)
        >>> block(ops.ones((1, 4, 1))).shape
        (1, 4, 2)
    """

    role = "hidden"

    def __init__(self, name: str = "hidden", cell: Literal["ltc", "cfc"] = "ltc") -> None:
        super().__init__(name, cell)


@register("blocks/output")
class OutputBlock(_Neurons):
    """Motor neurons of a neural circuit policy; with "ltc", each has a scale and an offset.

    Args:
        name: Name of the block in a wiring.
        cell: Neuron model: "ltc" or "cfc", as in `HiddenBlock`.
    """

    role = "output"
    output_mapping = "affine"

    def __init__(self, name: str = "output", cell: Literal["ltc", "cfc"] = "ltc") -> None:
        super().__init__(name, cell)
