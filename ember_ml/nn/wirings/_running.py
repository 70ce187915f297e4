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
    wiring: BlockWiring, inputs: Values, mask: Tensor | None, timespans: TensorLike | None
) -> Values:
    """Return the inputs and the outputs of all blocks for a sequence."""
    values = dict(inputs)
    for stage in wiring.plan.stages:
        if stage[0] in wiring.plan.loops:
            _loop(wiring, stage, values, mask, timespans)
        else:
            parts = [
                _flow.delayed(values[edge.source], mask) if edge.delayed else values[edge.source]
                for edge in wiring.plan.into[stage[0]]
            ]
            values[stage[0]] = wiring.run_block(stage[0], parts, mask, timespans)
    return values


def _loop(
    wiring: BlockWiring,
    stage: Sequence[str],
    values: Values,
    mask: Tensor | None,
    timespans: TensorLike | None,
) -> None:
    """Add the outputs of the blocks of a loop to `values`, computed position by position."""
    first = next(iter(values.values()))
    batch, length = first.shape[:2]
    edges = [edge for name in stage for edge in wiring.plan.into[name]]
    outside = {edge for edge in edges if edge.source not in stage}
    entering = [
        (
            edge,
            ops.unstack(
                _flow.delayed(values[edge.source], mask) if edge.delayed else values[edge.source], 1
            ),
        )
        for edge in sorted(outside)
    ]
    inner = {edge.source for edge in edges if edge.delayed and edge.source in stage}
    state = initial_state(wiring, stage, sorted(inner), batch, first)
    spans = _flow.spans_of(timespans, first)
    masks = [None] * length if mask is None else ops.unstack(mask[:, :, None], 1)
    collected: dict[str, list[Tensor]] = {name: [] for name in stage}
    for at in range(length):
        now = {edge.source: parts[at] for edge, parts in entering if not edge.delayed}
        past = {edge.source: parts[at] for edge, parts in entering if edge.delayed}
        before = {"blocks": state["blocks"], "before": {**past, **state["before"]}}
        blocks = position(wiring, stage, now, before, spans[at], masks[at])
        state = {"blocks": blocks, "before": {n: _flow.hidden(now[n], masks[at]) for n in inner}}
        for name in stage:
            collected[name].append(now[name])
    for name, outputs in collected.items():
        empty = (batch, 0, wiring.widths[name])
        values[name] = ops.stack(outputs, axis=1) if outputs else _flow.zeros(empty, first)


def position(
    wiring: BlockWiring,
    names: Sequence[str],
    now: Values,
    state: State,
    span: TensorLike | None,
    real: Tensor | None = None,
) -> dict[str, State]:
    """Add the outputs of blocks at one position to `now`, and return the next states."""
    states = {}
    for name in names:
        parts = [
            state["before"][edge.source] if edge.delayed else now[edge.source]
            for edge in wiring.plan.into[name]
        ]
        old = state["blocks"][name]
        now[name], new = wiring.step_block(name, parts, old, span)
        states[name] = _flow.held(name, real, new, old)
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
