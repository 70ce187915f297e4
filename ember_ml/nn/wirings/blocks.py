"""The base class of the wirings of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn import sequence_module
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.nn.wirings import _building, _flow, _plan, _running, _shapes
from ember_ml.nn.wirings._fields import BlocksLike, Features
from ember_ml.nn.wirings._plan import Connection, Plan
from ember_ml.nn.wirings.base import WiringError
from ember_ml.registry import build as build_component

if TYPE_CHECKING:
    from matplotlib.axes import Axes

T = TypeVar("T")


class BlockWiring(SequenceModule):
    """Graph of blocks: named modules, and connections between them.

    The output of a block goes to all blocks that it is connected to. Several inputs of a block are
    merged. A delayed connection passes on the output of the previous position, and zeros at first.

    Like any sequence module, a wiring has a `forward` for whole sequences and a `step` for one
    position. Blocks in a loop, which a delayed connection closes, run position by position in both.
    Shapes are checked when the wiring is built, by `build` or at the first call: each block then
    runs once with zeros.

    Subclasses define the connections: `GraphWiring`, `SequentialWiring`, `ResidualWiring`,
    `NCPWiring`.

    Args:
        name: Name of the wiring as a block of another wiring.
    """

    inputs: tuple[str, ...] = ("input",)
    outputs: tuple[str, ...] | None = None
    """Blocks whose outputs are returned. Default: blocks that no other block reads."""
    merge: str | Mapping[str, str] = "sum"
    """How several inputs of a block are merged: "sum", "concat" or "gate", or rules by block."""

    def __init__(self, name: str | None = None) -> None:
        self.name = name
        self.blocks: dict[str, Module] = {}
        self.connections: list[Connection] = []
        self.gates: dict[str, Parameter] = {}
        self.features: dict[str, Any] | None = None
        self.widths: dict[str, int] = {}
        self._plan: Plan | None = None

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether all blocks are causal."""
        return sequence_module.all_causal(self.blocks.values())

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether any block uses `timespans`."""
        return sequence_module.any_uses_timespans(self.blocks.values())

    def add_block(self, block: ComponentLike, name: str | None = None) -> Self:
        """Add a block, and return the wiring.

        Args:
            block: A module, its name in the registry, its config or {"type": ...}.
            name: Name of the block. Default: its attribute `name`, or "block_0", "block_1" ...
        """
        module = build_component("", block)
        if not isinstance(module, Module):
            raise ArgumentTypeError(
                f"{self._at('add_block')}: a block must be a module, not {module!r:.60}"
            )
        name = self._checked_name(name or getattr(module, "name", None) or self._free_name())
        self.blocks[name] = module
        self._changed()
        return self

    def connect(
        self, from_block: str | Module, to_block: str | Module, delayed: bool = False
    ) -> Self:
        """Connect the output of a block, or an input, to a block; return the wiring.

        Args:
            from_block: The source block or its name, or the name of an input.
            to_block: The target block or its name.
            delayed: Whether the target reads the output of the previous position.
        """
        source, target = self._name_of(from_block), self._name_of(to_block)
        if target in self.inputs:
            raise WiringError(
                f"{self._at('connect')}: {target!r} is an input and cannot be a target"
            )
        connection = Connection(source, target, bool(delayed))
        if connection in self.connections:
            raise WiringError(
                f"{self._at('connect')}: {source!r} is already connected to {target!r}"
            )
        self.connections.append(connection)
        self._changed()
        return self

    def _add_blocks(self, blocks: BlocksLike) -> None:
        """Add blocks by name, or in order."""
        if isinstance(blocks, Mapping):
            for name, block in blocks.items():
                self.add_block(block, name)
        else:
            for block in blocks:
                self.add_block(block)

    def _at(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _changed(self) -> None:
        self._plan = None
        self.widths = {}

    def _free_name(self) -> str:
        names = (f"block_{at}" for at in range(len(self.blocks), 2 * len(self.blocks) + 1))
        return next(name for name in names if name not in self.blocks)

    def _checked_name(self, name: object) -> str:
        where = self._at("add_block")
        if not isinstance(name, str) or "." in name:
            raise WiringError(f"{where}: a name must be a string without dots, not {name!r}")
        if name in self.inputs:
            raise WiringError(f"{where}: {name!r} is the name of an input; choose another name")
        if name in self.blocks:
            raise WiringError(f"{where}: there is already a block {name!r}")
        return name

    def _name_of(self, block: str | Module) -> str:
        if isinstance(block, str):
            _plan.check_known(self._at("connect"), [block], [*self.inputs, *self.blocks])
            return block
        names = [name for name, known in self.blocks.items() if known is block]
        if len(names) != 1:
            problem = (
                "has several names; pass one of them" if names else "is not a block of this wiring"
            )
            raise WiringError(f"{self._at('connect')}: {type(block).__name__} {problem}")
        return names[0]

    @property
    def plan(self) -> Plan:
        """Execution plan: the order of the blocks. An invalid wiring raises a WiringError."""
        if self._plan is None:
            try:
                self._plan = self.make_plan()
            except WiringError as error:
                raise WiringError(f"{type(self).__name__}: {error}") from None
        return self._plan

    def make_plan(self) -> Plan:
        """Return the execution plan of the current blocks and connections."""
        if not isinstance(self.merge, str):
            _plan.check_known("merge", self.merge, self.blocks)
        return _plan.create_plan(self.inputs, list(self.blocks), self.connections, self.outputs)

    def build(self, features: Features | None = None) -> Self:
        """Check the shapes, create the parameters of gates, and return the wiring.

        Args:
            features: Number of features of the input, or {input: number}; "tokens" for integers of
                shape (batch, time). Default: what the wiring was created with.
        """
        _building.build(self, features)
        return self

    @property
    def is_built(self) -> bool:
        """Whether the wiring was built since the last change."""
        return bool(self.widths)

    def rule(self, name: str) -> str:
        """Return how the inputs of a block are merged."""
        return self.merge if isinstance(self.merge, str) else self.merge.get(name, "sum")

    def merged(self, name: str, parts: Sequence[Tensor]) -> Tensor:
        """Return the input of a block, merged from the outputs that it reads."""
        rule = self.rule(name)
        if rule != "concat" and len({part.shape[-1:] for part in parts}) > 1:
            raise _shapes.unequal(self._sources(name), name, parts)
        return _flow.merged(parts, rule, self.gates.get(name) if self.is_built else None)

    def _sources(self, name: str) -> list[str]:
        return [edge.source for edge in self.plan.into[name]]

    def run_block(
        self,
        name: str,
        parts: Sequence[Tensor],
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
    ) -> Tensor:
        """Return the output of a block for a sequence.

        Args:
            name: Name of the block.
            parts: Outputs that the block reads.
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for blocks that use it.
        """
        block = self.blocks[name]
        x = self.merged(name, parts)
        y = self._call(name, x, lambda: sequence_module.run(block, x, mask, timespans))
        if not isinstance(y, Tensor):
            raise WiringError(f"{name!r} returns a {type(y).__name__}, not a tensor")
        return self.leave(name, x, y)

    def extend_block(
        self,
        name: str,
        parts: Sequence[Tensor],
        state: State,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
    ) -> tuple[Tensor, State]:
        """Return the output of a block for the next part of a sequence, and its next state."""
        block = self.blocks[name]
        x = self.merged(name, parts)
        y, state = self._call(
            name, x, lambda: sequence_module.extend(block, x, state, mask, timespans)
        )
        return self.leave(name, x, y), state

    def step_block(
        self,
        name: str,
        parts: Sequence[Tensor],
        state: State,
        timespan: TensorLike | None = None,
    ) -> tuple[Tensor, State]:
        """Return the output of a block at one position, and its next state."""
        block = self.blocks[name]
        x = self.merged(name, parts)
        y, state = self._call(name, x, lambda: sequence_module.step(block, x, state, timespan))
        return self.leave(name, x, y), state

    def _call(self, name: str, x: Tensor, call: Callable[[], T]) -> T:
        """Return the result of a call; a ShapeError names the blocks."""
        try:
            return call()
        except ShapeError as error:
            sources = self._sources(name)
            raise _shapes.mismatch(sources, name, self.blocks[name], x, error) from error

    def leave(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        """Return what is passed on from a block that maps x to y; subclasses may override it."""
        return y

    def forward(
        self,
        x: Tensor | Mapping[str, Tensor],
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the output for a sequence: a tensor, or a dict if there are several outputs.

        With a state, also return the state after the last position.

        Args:
            x: Tensor of shape (batch, time, features), or a dict of tensors by input. (batch,
                features) is a single position; integers of shape (batch, time) are tokens.
            mask: Padding mask of shape (batch, time), False at padding. No other position sees the
                padding.
            timespans: Time since the previous position, for blocks that use it: a number, (time,)
                or (batch, time).
            state: State before the first position. Default: the start of the sequence.
        """
        given = _building.by_name(self, x)
        single = all(value.ndim == 2 and value.dtype.is_floating for value in given.values())
        if single:
            given = {name: value[:, None] for name, value in given.items()}
        _building.prepare(self, given, lead=2)
        _building.check_mask(self, mask, given)
        if state is not None and mask is not None:
            self.check_right_padded(mask)
        values, after = _running.sequence(self, given, mask, timespans, state)
        if single:
            values = {name: y[:, 0] if y.ndim == 3 else y for name, y in values.items()}
        outputs = self._outputs(values)
        return outputs if state is None else (outputs, after)

    def _outputs(self, values: Mapping[str, Tensor]) -> Any:
        names = self.plan.outputs
        return values[names[0]] if len(names) == 1 else {name: values[name] for name in names}

    def initial_state(self, batch: int) -> State:
        """Return the initial states of the blocks, and zeros for the delayed connections."""
        delayed = self.plan.delayed
        if delayed and not self.is_built:
            self.build()
        return _running.initial_state(self, self.plan.order, delayed, batch)

    def step(
        self,
        x: Tensor | Mapping[str, Tensor],
        state: State,
        timespan: TensorLike | None = None,
    ) -> tuple[Any, State]:
        """Return the output at one position, and the next state.

        Args:
            x: Tensor of shape (batch, features), or a dict of tensors by input.
            state: The result of `initial_state` or of the last step.
            timespan: Time since the previous position, for blocks that use it.
        """
        now = _building.by_name(self, x)
        _building.prepare(self, now, lead=1)
        blocks = _running.position(self, self.plan.order, now, state, timespan)
        before = {name: now[name] for name in self.plan.delayed}
        return self._outputs(now), {"blocks": blocks, "before": before}

    @property
    def state_size(self) -> int:
        """Number of elements of the recurrent state, per example."""
        delayed = self.plan.delayed if self.is_built else []
        return super().state_size + sum(self.widths[name] for name in delayed)

    def draw(self, axes: Axes | None = None) -> Axes:
        """Draw the wiring with matplotlib, from left to right, and return the axes.

        Args:
            axes: Axes to draw on. Default: those of a new figure.
        """
        from ember_ml.nn.wirings import _block_drawing

        return _block_drawing.draw(self, axes)

    def block_configs(self) -> dict[str, Any]:
        """Return the configs of the current blocks; the block itself where there is none."""
        return {name: block.config or block for name, block in self.blocks.items()}

    def extra_repr(self) -> str:
        """Return the connections."""
        return ", ".join(str(edge) for edge in self.connections)
