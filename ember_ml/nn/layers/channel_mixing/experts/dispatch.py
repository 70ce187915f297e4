"""Items brought to their experts.

Only the chosen experts run. Where the counts can be read, each expert gets exactly its items.
Where they cannot, for a compiler needs fixed shapes, the items of each expert fill up blocks of a
fixed size, of which there are as many as can be needed; a block that stays empty counts for
nothing. A layer that is no stack of matrices gets one block, as large as its room.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml.nn.flops import is_counting
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing

LARGEST_BLOCK = 128


class Groups(NamedTuple):
    """The assignments by expert."""

    order: Tensor
    """(assignments,): those of the first expert, those of the second ..., those of nobody."""
    starts: Tensor
    """(experts,): where those of an expert begin."""
    counts: Tensor
    """(experts,): how many it works on, which are the first ones."""
    is_kept: Tensor
    """(assignments,), in order: whether it is worked on."""
    is_lost: Tensor
    """(assignments,), in order: whether it found no room."""


class Work(NamedTuple):
    """What the experts did."""

    outputs: Tensor
    """(rows, ...)."""
    rows: Tensor
    """(rows,): the assignment of each."""
    weights: Tensor
    """(rows,): its weight; 0 for a row that only fills up."""
    groups: Groups


def grouped(routing: Routing, capacity: int | None) -> Groups:
    """The assignments sorted by expert, as many for each as it has room for."""
    count = routing.logits.shape[1]
    order = ops.argsort(routing.experts, stable=True)
    wanted = ops.segment_sum(ops.ones_like(routing.experts), routing.experts, count + 1)
    starts = ops.cumsum(wanted, axis=0) - wanted
    owner = ops.take(routing.experts, order, axis=0)
    has_owner = owner < count
    counts = wanted[:count]
    if capacity is None:
        return Groups(order, starts[:count], counts, has_owner, ops.zeros_like(has_owner))
    place = range_like(order, order.shape[0]) - ops.take(starts, owner, axis=0)
    has_room = ops.less(place, capacity)
    return Groups(
        order,
        starts[:count],
        ops.minimum(counts, capacity),
        ops.logical_and(has_owner, has_room),
        ops.logical_and(has_owner, ops.logical_not(has_room)),
    )


def range_like(x: Tensor, end: int) -> Tensor:
    """0 to end - 1 in the dtype and place of x, which is not empty."""
    return ops.cumsum(ops.broadcast_to(ops.ones_like(x[:1]), (end,)), axis=0) - 1


def dispatch(
    experts: Any, inputs: tuple[Tensor, ...], routing: Routing, capacity: int | None
) -> Work:
    """The outputs of the experts for the items that they were assigned.

    Args:
        experts: `run_groups` and `run_blocks`.
        inputs: what an expert is called with, each (items, ...).
        routing: who works on what.
        capacity: how many items an expert has room for; no limit if None.
    """
    groups = grouped(routing, capacity)
    if _counts_are_to_be_read(groups.counts, experts.in_blocks):
        return _by_groups(experts, inputs, routing, groups)
    return _by_blocks(experts, inputs, routing, groups, capacity)


def _counts_are_to_be_read(counts: Tensor, in_blocks: bool) -> bool:
    """Whether the counts have values now, and no compiler waits for fixed shapes."""
    backend = runtime.LOADED[counts._backend]
    if in_blocks and backend.autodiff.COMPILES_QUICKLY and not is_counting():
        return False
    return backend.truth((counts[0] >= 0)._data) is not None


def _by_groups(experts: Any, inputs: tuple[Tensor, ...], routing: Routing, groups: Groups) -> Work:
    counts = groups.counts.tolist()
    whole = sum(counts) == groups.order.shape[0]
    rows = groups.order if whole else ops.masked_select(groups.order, groups.is_kept)
    items = ops.take(routing.items, rows, axis=0)
    cuts = [sum(counts[:at]) for at in range(1, len(counts))]
    parts = [ops.split(ops.embedding(x, items), cuts, axis=0) for x in inputs]
    outputs = experts.run_groups(list(zip(*parts, strict=True)))
    joined = ops.concat(outputs, axis=0) if outputs else inputs[0][:0]
    return Work(joined, rows, ops.take(routing.weights, rows, axis=0), groups)


def _by_blocks(
    experts: Any, inputs: tuple[Tensor, ...], routing: Routing, groups: Groups, capacity: int | None
) -> Work:
    total = groups.order.shape[0]
    if experts.in_blocks:
        owners, within = _blocks(groups.counts, total)
    else:
        room = inputs[0].shape[0] if capacity is None else min(capacity, inputs[0].shape[0])
        owners = range_like(groups.counts, groups.counts.shape[0])
        within = range_like(groups.counts, room)[None, :]
    is_used = within < ops.take(groups.counts, owners, axis=0)[:, None]
    places = ops.take(groups.starts, owners, axis=0)[:, None] + within
    places = ops.reshape(ops.where(is_used, places, 0), (-1,))
    rows = ops.take(groups.order, places, axis=0)
    items = ops.take(routing.items, rows, axis=0)
    blocks = [ops.embedding(x, ops.reshape(items, is_used.shape)) for x in inputs]
    outputs = experts.run_blocks(tuple(blocks), owners)
    weights = ops.take(routing.weights, rows, axis=0)
    weights = ops.where(ops.reshape(is_used, (-1,)), weights, 0.0)
    return Work(ops.reshape(outputs, (-1, *outputs.shape[2:])), rows, weights, groups)


def _blocks(counts: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """The expert of each block, and which of its items (blocks, size) stand in the block."""
    num_experts = counts.shape[0]
    size = _block_size(total // num_experts)
    needed = (counts + (size - 1)) // size
    ends = ops.cumsum(needed, axis=0)
    block = range_like(counts, total // size + num_experts)
    owners = ops.astype(block[:, None] >= ends[None, :], counts.dtype).sum(axis=1)
    owners = ops.minimum(owners, num_experts - 1)
    first = ops.take(ends - needed, owners, axis=0)
    within = ((block - first) * size)[:, None] + range_like(counts, size)[None, :]
    return owners, within


def _block_size(mean: int) -> int:
    """A quarter of an expert's mean share: little is filled up, and a matrix is read few times."""
    size = 8
    while size * 8 <= mean and size < LARGEST_BLOCK:
        size *= 2
    return size
