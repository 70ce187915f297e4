"""Execution of a block wiring, over a sequence and position by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ember_ml import ops
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn import sequence_module
from ember_ml.nn.sequence_module import SequenceModule, State
from ember_ml.nn.wirings import _flow
from ember_ml.nn.wirings.base import WiringError

if TYPE_CHECKING:
    from ember_ml.nn.wirings.blocks import BlockWiring

Values = dict[str, Tensor]


def sequence(
    wiring: BlockWiring,
    inputs: Values,
    mask: Tensor | None,
    timespans: TensorLike | None,
    state: State | None = None,
) -> tuple[Values, State]:
    """Return the inputs and the outputs of all blocks for a sequence, and the next state.

    Without a state, the sequence starts at its first position; the second result is then empty.
    """
    values = dict(inputs)
    blocks: dict[str, State] = {}
    for stage in wiring.plan.stages:
        name = stage[0]
        if name in wiring.plan.loops:
            blocks |= _loop(wiring, stage, values, mask, timespans, state)
            continue
        parts = [
            _delayed(values, edge.source, mask, state) if edge.delayed else values[edge.source]
            for edge in wiring.plan.into[name]
        ]
        if state is None:
            values[name] = wiring.run_block(name, parts, mask, timespans)
        else:
            before = state["blocks"][name]
            values[name], blocks[name] = wiring.extend_block(name, parts, before, mask, timespans)
    if state is None:
        return values, {}
    last = {name: _flow.last(values[name], old, mask) for name, old in state["before"].items()}
    return values, {"blocks": blocks, "before": last}


def _delayed(values: Values, source: str, mask: Tensor | None, state: State | None) -> Tensor:
    """Return the outputs of a block, each one position later."""
    return _flow.delayed(values[source], mask, None if state is None else state["before"][source])


def _loop(
    wiring: BlockWiring,
    stage: Sequence[str],
    values: Values,
    mask: Tensor | None,
    timespans: TensorLike | None,
    state: State | None,
) -> dict[str, State]:
    """Add the outputs of the blocks of a loop to `values`, computed position by position.

    Returns the next states of the blocks.
    """
    first = next(iter(values.values()))
    batch, length = first.shape[:2]
    edges = [edge for name in stage for edge in wiring.plan.into[name]]
    outside = {edge for edge in edges if edge.source not in stage}
    entering = [
        (
            edge,
            ops.unstack(
                _delayed(values, edge.source, mask, state) if edge.delayed else values[edge.source],
                1,
            ),
        )
        for edge in sorted(outside)
    ]
    inner = {edge.source for edge in edges if edge.delayed and edge.source in stage}
    current = state or initial_state(wiring, stage, sorted(inner), batch, first)
    spans = _flow.spans_of(timespans, first)
    masks = [None] * length if mask is None else ops.unstack(mask[:, :, None], 1)
    collected: dict[str, list[Tensor]] = {name: [] for name in stage}
    for at in range(length):
        now = {edge.source: parts[at] for edge, parts in entering if not edge.delayed}
        past = {edge.source: parts[at] for edge, parts in entering if edge.delayed}
        before = {"blocks": current["blocks"], "before": {**current["before"], **past}}
        blocks = position(wiring, stage, now, before, spans[at], masks[at])
        hidden = {name: _flow.hidden(now[name], masks[at]) for name in inner}
        current = {"blocks": blocks, "before": hidden}
        for name in stage:
            collected[name].append(now[name])
    for name, outputs in collected.items():
        empty = (batch, 0, wiring.widths[name])
        values[name] = ops.stack(outputs, axis=1) if outputs else _flow.zeros(empty, first)
    return {name: current["blocks"][name] for name in stage}


def position(
    wiring: BlockWiring,
    names: Sequence[str],
    now: Values,
    state: State,
    span: TensorLike | None,
    real: Tensor | None = None,
) -> dict[str, State]:
    """Add the outputs of blocks at one position to `now`, and return the next states.

    Args:
        wiring: The wiring.
        names: The blocks, in order.
        now: Inputs and outputs at the position, which is extended.
        state: State before the position.
        span: Time since the previous position.
        real: (batch, 1), False for examples at padding, whose state does not change.
    """
    states = {}
    for name in names:
        parts = [
            state["before"][edge.source] if edge.delayed else now[edge.source]
            for edge in wiring.plan.into[name]
        ]
        old = state["blocks"][name]
        if real is None:
            now[name], states[name] = wiring.step_block(name, parts, old, span)
        else:
            parts = [part[:, None] for part in parts]
            y, states[name] = wiring.extend_block(name, parts, old, real, span)
            now[name] = y[:, 0]
    return states


def initial_state(
    wiring: BlockWiring,
    names: Sequence[str],
    delayed: Sequence[str],
    batch: int,
    like: Tensor | None = None,
) -> State:
    """Return the initial states of blocks, and zeros for the delayed connections."""
    if like is None or not like.dtype.is_floating:
        like = next((p for p in wiring.parameters() if p.dtype.is_floating), like)
    before = {name: _before(wiring, name, batch, like) for name in delayed}
    return {
        "blocks": {name: _initial_state(wiring, name, batch) for name in names},
        "before": before,
    }


def _before(wiring: BlockWiring, name: str, batch: int, like: Tensor | None) -> Tensor:
    """Return the value of a delayed connection at the first position."""
    if (wiring.features or {}).get(name) == "tokens":
        return _flow.zeros((batch,), like).astype("int64")
    return _flow.zeros((batch, wiring.widths[name]), like)


def _initial_state(wiring: BlockWiring, name: str, batch: int) -> State:
    block = wiring.blocks[name]
    where = f"{type(wiring).__name__}: {name!r} cannot run position by position"
    if not isinstance(block, SequenceModule):
        if any(isinstance(inner, SequenceModule) for inner in block.modules()):
            raise WiringError(
                f"{where}: {type(block).__name__} holds modules that mix positions but has no "
                "step(); use a SequentialWiring"
            )
        return ()
    if not block.is_causal:
        raise WiringError(f"{where}: {type(block).__name__} needs the whole sequence")
    try:
        return sequence_module.initial_state(block, batch)
    except NotImplementedError as error:
        raise WiringError(f"{where}: {error}") from error
