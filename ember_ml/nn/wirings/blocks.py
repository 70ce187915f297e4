"""The base of the wirings of blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn import sequence_module
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.nn.wirings import _building, _flow, _plan, _running, _shapes
from ember_ml.nn.wirings._plan import Connection, Plan
from ember_ml.nn.wirings.base import WiringError
from ember_ml.registry import build as build_component


class BlockWiring(SequenceModule):
    """A graph of blocks: modules with names, and connections between them.

    What a block gives goes to all that it is connected to; where several outputs meet, they are
    merged. A delayed connection gives the output of the position before, and zeros at the first.

    It has the two forms of a sequence module: `forward` for a whole sequence, `step` for one
    position. Blocks in a loop, which a delayed connection closes, go position by position in both.
    Shapes are checked when it is built, by `build` or at the first call: each block runs once, with
    zeros.

    Subclasses say what is connected: `GraphWiring`, `SequentialWiring`, `ResidualWiring`,
    `NCPWiring`.

    Args:
        name: what it is called as a block of another wiring.
    """

    inputs: tuple[str, ...] = ("input",)
    outputs: tuple[str, ...] | None = None
    """The blocks whose outputs come out; those that lead nowhere if not given."""
    merge: str | Mapping[str, str] = "sum"
    """How outputs that meet are merged: "sum", "concat", "gate"; at all blocks, or at some."""

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
        """Whether no block looks ahead."""
        return all(block.is_causal for block in self._mixing())

    @property
    def uses_timespans(self) -> bool:  # type: ignore[override]
        """Whether a block minds the time between positions."""
        return any(block.uses_timespans for block in self._mixing())

    def _mixing(self) -> list[SequenceModule]:
        return [block for block in self.blocks.values() if isinstance(block, SequenceModule)]

    def add_block(self, block: Any, name: str | None = None) -> Self:
        """Add a block.

        Args:
            block: a module, its name in the registry, its config or {"type": ...}.
            name: what it is called here; its attribute `name`, or "block_0" ..., if not given.
        """
        made = build_component("", block)
        if not isinstance(made, Module):
            raise ArgumentTypeError(
                f"{self._at('add_block')}: a block is a module, not {made!r:.60}"
            )
        name = self._checked_name(name or getattr(made, "name", None) or self._free_name())
        self.blocks[name] = made
        self._changed()
        return self

    def connect(self, from_block: Any, to_block: Any, delayed: bool = False) -> Self:
        """Lead the output of a block, or an input, to a block.

        Args:
            from_block: the block or its name, or the name of an input.
            to_block: the block or its name.
            delayed: whether it is seen a position later.
        """
        source, target = self._name_of(from_block), self._name_of(to_block)
        if target in self.inputs:
            raise WiringError(f"{self._at('connect')}: {target!r} is an input; nothing leads to it")
        made = Connection(source, target, bool(delayed))
        if made in self.connections:
            raise WiringError(f"{self._at('connect')}: {source!r} leads to {target!r} already")
        self.connections.append(made)
        self._changed()
        return self

    def _add_blocks(self, blocks: Mapping[str, Any] | Sequence[Any]) -> None:
        """Add blocks by name, or in order."""
        named = blocks.items() if isinstance(blocks, Mapping) else [(None, each) for each in blocks]
        for name, block in named:
            self.add_block(block, name)

    def _at(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _changed(self) -> None:
        self._plan = None
        self.widths = {}

    def _free_name(self) -> str:
        names = (f"block_{at}" for at in range(len(self.blocks), 2 * len(self.blocks) + 1))
        return next(name for name in names if name not in self.blocks)

    def _checked_name(self, name: Any) -> str:
        where = self._at("add_block")
        if not isinstance(name, str) or "." in name:
            raise WiringError(f"{where}: a name is a string without dots, not {name!r}")
        if name in self.inputs:
            raise WiringError(f"{where}: {name!r} is the name of an input; give the block another")
        if name in self.blocks:
            raise WiringError(f"{where}: there is a block {name!r} already")
        return name

    def _name_of(self, block: Any) -> str:
        if isinstance(block, str):
            _plan.check_known(self._at("connect"), [block], [*self.inputs, *self.blocks])
            return block
        names = [name for name, known in self.blocks.items() if known is block]
        if len(names) != 1:
            what = (
                "is here under several names; give one" if names else "is no block of this wiring"
            )
            raise WiringError(f"{self._at('connect')}: {type(block).__name__} {what}")
        return names[0]

    @property
    def plan(self) -> Plan:
        """The blocks in the order in which they run; an error if the wiring is not whole."""
        if self._plan is None:
            try:
                self._plan = self.make_plan()
            except WiringError as error:
                raise WiringError(f"{type(self).__name__}: {error}") from None
        return self._plan

    def make_plan(self) -> Plan:
        """The plan of the blocks and connections that are here now."""
        if not isinstance(self.merge, str):
            _plan.check_known("merge", self.merge, self.blocks)
        return _plan.make(self.inputs, list(self.blocks), self.connections, self.outputs)

    def build(self, features: Any = None) -> Self:
        """Check the shapes, and make the parameters of gates.

        Args:
            features: how many features the input has, or {input: how many}; "tokens" for (batch,
                time) of integers. What was given to the wiring, if not given.
        """
        _building.build(self, features)
        return self

    @property
    def is_built(self) -> bool:
        """Whether the shapes were checked since the last change."""
        return bool(self.widths)

    def rule(self, name: str) -> str:
        """How what meets at a block is merged."""
        return self.merge if isinstance(self.merge, str) else self.merge.get(name, "sum")

    def merged(self, name: str, parts: Sequence[Tensor]) -> Tensor:
        """What a block is given."""
        rule = self.rule(name)
        if rule != "concat" and len({part.shape[-1:] for part in parts}) > 1:
            raise _shapes.unequal(self._sources(name), name, parts)
        return _flow.merged(parts, rule, self.gates.get(name) if self.is_built else None)

    def _sources(self, name: str) -> list[str]:
        return [edge.source for edge in self.plan.into[name]]

    def run_block(
        self, name: str, parts: Sequence[Tensor], mask: Tensor | None = None, timespans: Any = None
    ) -> Tensor:
        """A sequence through one of the blocks."""
        block = self.blocks[name]
        x = self.merged(name, parts)
        y = self._tried(name, x, lambda: sequence_module.run(block, x, mask, timespans))
        if not isinstance(y, Tensor):
            raise WiringError(f"{name!r} gives a {type(y).__name__}, not a tensor")
        return self.leave(name, x, y)

    def step_block(
        self, name: str, parts: Sequence[Tensor], state: State, timespan: Any = None
    ) -> tuple[Tensor, State]:
        """One position through one of the blocks."""
        block = self.blocks[name]
        x = self.merged(name, parts)
        y, state = self._tried(name, x, lambda: sequence_module.step(block, x, state, timespan))
        return self.leave(name, x, y), state

    def _tried(self, name: str, x: Tensor, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except ShapeError as error:
            sources = self._sources(name)
            raise _shapes.mismatch(sources, name, self.blocks[name], x, error) from error

    def leave(self, name: str, x: Tensor, y: Tensor) -> Tensor:
        """What leaves a block that gave y for x."""
        return y

    def forward(self, x: Any, mask: Tensor | None = None, timespans: Any = None) -> Any:
        """The outputs of a sequence: one tensor, or a dict of them if there are several.

        Args:
            x: (batch, time, features), or a dict of them by the names of the inputs; (batch,
                features) is one position, and (batch, time) of integers are tokens.
            mask: (batch, time), False where there is padding, which no other position sees.
            timespans: the time since the position before, for the blocks that take it: a number,
                (time,) or (batch, time).
        """
        given = _building.by_name(self, x)
        single = all(value.ndim == 2 and value.dtype.is_floating for value in given.values())
        if single:
            given = {name: value[:, None] for name, value in given.items()}
        _building.prepare(self, given, lead=2)
        _building.check_mask(self, mask, given)
        values = _running.sequence(self, given, mask, timespans)
        if single:
            values = {name: y[:, 0] if y.ndim == 3 else y for name, y in values.items()}
        return self._leaving(values)

    def _leaving(self, values: Mapping[str, Tensor]) -> Any:
        names = self.plan.outputs
        return values[names[0]] if len(names) == 1 else {name: values[name] for name in names}

    def initial_state(self, batch: int) -> State:
        """The states of the blocks, and zeros for what delayed connections give at first."""
        delayed = self.plan.delayed
        if delayed and not self.is_built:
            self.build()
        return _running.initial_state(self, self.plan.order, delayed, batch)

    def step(self, x: Any, state: State, timespan: Any = None) -> tuple[Any, State]:
        """The outputs of one position, and the state after it.

        Args:
            x: (batch, features), or a dict of them.
            state: what `initial_state` or the last step gave.
            timespan: the time since the position before, for the blocks that take it.
        """
        now = _building.by_name(self, x)
        _building.prepare(self, now, lead=1)
        blocks = _running.position(self, self.plan.order, now, state, timespan)
        before = {name: now[name] for name in self.plan.delayed}
        return self._leaving(now), {"blocks": blocks, "before": before}

    @property
    def state_size(self) -> int:
        """How many numbers the state has, per example."""
        delayed = self.plan.delayed if self.is_built else []
        return super().state_size + sum(self.widths[name] for name in delayed)

    def draw(self, axes: Any = None) -> Any:
        """Draw it with matplotlib: what is read stands to the left of what reads it.

        Args:
            axes: where to draw; a new figure if not given.

        Returns:
            The axes.
        """
        from ember_ml.nn.wirings import _block_drawing

        return _block_drawing.draw(self, axes)

    def block_configs(self) -> dict[str, Any]:
        """What the blocks that are here now were built by."""
        return {name: block.config or block for name, block in self.blocks.items()}

    def extra_repr(self) -> str:
        """The connections."""
        return ", ".join(str(edge) for edge in self.connections)
