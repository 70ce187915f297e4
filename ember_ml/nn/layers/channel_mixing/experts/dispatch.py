"""Dispatch of items to their experts, and combination of the outputs.

Only the chosen experts run. If the number of items of each expert can be read, each expert gets
exactly its items. A compiler needs fixed shapes instead: the items of each expert then fill blocks
of a fixed size, and empty blocks get weight 0. A layer that is not a stack of matrices gets one
block of the size of its capacity.
"""

from __future__ import annotations

from typing import NamedTuple

from ember_ml import ops
from ember_ml._core import runtime
from ember_ml._core.tensor import Tensor
from ember_ml.nn.flops import is_counting
from ember_ml.nn.layers.channel_mixing.experts.expert_modules import Experts
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing

LARGEST_BLOCK = 128


class Groups(NamedTuple):
    """The assignments sorted by expert."""

    order: Tensor
    """Indices of the assignments sorted by expert, empty ones last, (assignments,)."""
    starts: Tensor
    """Start of each expert's group in `order`, (experts,)."""
    counts: Tensor
    """Number of items that each expert processes, (experts,)."""
    is_processed: Tensor
    """Whether each assignment in `order` is processed, (assignments,)."""
    is_dropped: Tensor
    """Whether each assignment in `order` exceeds the capacity, (assignments,)."""


class ExpertOutputs(NamedTuple):
    """The outputs of the experts."""

    outputs: Tensor
    """Output of each row, (rows, ...)."""
    rows: Tensor
    """Assignment of each row, (rows,)."""
    weights: Tensor
    """Weight of each row, (rows,); 0 for a row that only fills a block."""
    groups: Groups


def group_by_expert(routing: Routing, capacity: int | None) -> Groups:
    """Sort the assignments by expert and apply the capacity.

    Args:
        routing: The decision of the router.
        capacity: Largest number of items per expert. None: no limit.
    """
    num_experts = routing.logits.shape[1]
    order = ops.argsort(routing.experts, stable=True)
    requested = ops.segment_sum(ops.ones_like(routing.experts), routing.experts, num_experts + 1)
    starts = ops.cumsum(requested, axis=0) - requested
    owner = ops.take(routing.experts, order, axis=0)
    has_owner = owner < num_experts
    counts = requested[:num_experts]
    if capacity is None:
        return Groups(order, starts[:num_experts], counts, has_owner, ops.zeros_like(has_owner))
    place = range_like(order, order.shape[0]) - ops.take(starts, owner, axis=0)
    fits = ops.less(place, capacity)
    return Groups(
        order,
        starts[:num_experts],
        ops.minimum(counts, capacity),
        ops.logical_and(has_owner, fits),
        ops.logical_and(has_owner, ops.logical_not(fits)),
    )


def select_experts(groups: Groups, routing: Routing, own: range) -> Groups:
    """Return the groups of some experts only; the assignments of the others are not processed.

    Args:
        groups: The groups of all experts.
        routing: The decision of the router.
        own: The experts.
    """
    if len(own) == groups.counts.shape[0]:
        return groups
    owner = ops.take(routing.experts, groups.order, axis=0)
    is_own = ops.logical_and(owner >= own.start, owner < own.stop)
    return Groups(
        groups.order,
        groups.starts[own.start : own.stop],
        groups.counts[own.start : own.stop],
        ops.logical_and(groups.is_processed, is_own),
        ops.logical_and(groups.is_dropped, is_own),
    )


def range_like(x: Tensor, end: int) -> Tensor:
    """Return 0 to end - 1 with the dtype and device of x, which must not be empty."""
    return ops.cumsum(ops.broadcast_to(ops.ones_like(x[:1]), (end,)), axis=0) - 1


def dispatch(
    experts: Experts,
    inputs: tuple[Tensor, ...],
    routing: Routing,
    capacity: int | None,
    own: range,
) -> ExpertOutputs:
    """Run the experts on their items.

    Args:
        experts: The experts.
        inputs: Arguments of an expert, (items, ...) each.
        routing: The decision of the router.
        capacity: Largest number of items per expert. None: no limit.
        own: Indices of the experts among all that the router knows.
    """
    groups = select_experts(group_by_expert(routing, capacity), routing, own)
    if _can_read_counts(groups.counts, experts.in_blocks):
        return _run_groups(experts, inputs, routing, groups)
    return _run_blocks(experts, inputs, routing, groups, capacity)


def _can_read_counts(counts: Tensor, in_blocks: bool) -> bool:
    """Return whether the counts have values now, and no compiler needs fixed shapes."""
    backend = runtime.LOADED[counts.backend]
    if in_blocks and backend.autodiff.COMPILES_QUICKLY and not is_counting():
        return False
    return backend.truth((counts[0] >= 0).native) is not None


def _run_groups(
    experts: Experts, inputs: tuple[Tensor, ...], routing: Routing, groups: Groups
) -> ExpertOutputs:
    counts = groups.counts.tolist()
    is_complete = sum(counts) == groups.order.shape[0]
    rows = groups.order if is_complete else ops.masked_select(groups.order, groups.is_processed)
    items = ops.take(routing.items, rows, axis=0)
    boundaries = [sum(counts[:expert]) for expert in range(1, len(counts))]
    parts = [ops.split(ops.embedding(x, items), boundaries, axis=0) for x in inputs]
    outputs = experts.run_groups(list(zip(*parts, strict=True)))
    joined = ops.concat(outputs, axis=0) if outputs else experts.run_empty(inputs)
    return ExpertOutputs(joined, rows, ops.take(routing.weights, rows, axis=0), groups)


def _run_blocks(
    experts: Experts,
    inputs: tuple[Tensor, ...],
    routing: Routing,
    groups: Groups,
    capacity: int | None,
) -> ExpertOutputs:
    num_assignments = groups.order.shape[0]
    if experts.in_blocks:
        owners, places = _assign_blocks(groups.counts, num_assignments)
    else:
        num_items = inputs[0].shape[0]
        size = num_items if capacity is None else min(capacity, num_items)
        owners = range_like(groups.counts, groups.counts.shape[0])
        places = range_like(groups.counts, size)[None, :]
    is_used = places < ops.take(groups.counts, owners, axis=0)[:, None]
    places = ops.take(groups.starts, owners, axis=0)[:, None] + places
    places = ops.reshape(ops.where(is_used, places, 0), (-1,))
    rows = ops.take(groups.order, places, axis=0)
    items = ops.take(routing.items, rows, axis=0)
    blocks = [ops.embedding(x, ops.reshape(items, is_used.shape)) for x in inputs]
    outputs = experts.run_blocks(tuple(blocks), owners)
    weights = ops.take(routing.weights, rows, axis=0)
    weights = ops.where(ops.reshape(is_used, (-1,)), weights, 0.0)
    return ExpertOutputs(ops.reshape(outputs, (-1, *outputs.shape[2:])), rows, weights, groups)


def _assign_blocks(counts: Tensor, num_assignments: int) -> tuple[Tensor, Tensor]:
    """Return the expert of each block, and the places in its group, (blocks, block size)."""
    num_experts = counts.shape[0]
    size = _block_size(num_assignments // num_experts)
    needed = (counts + (size - 1)) // size
    ends = ops.cumsum(needed, axis=0)
    block = range_like(counts, num_assignments // size + num_experts)
    owners = ops.astype(block[:, None] >= ends[None, :], counts.dtype).sum(axis=1)
    owners = ops.minimum(owners, num_experts - 1)
    first = ops.take(ends - needed, owners, axis=0)
    places = ((block - first) * size)[:, None] + range_like(counts, size)[None, :]
    return owners, places


def _block_size(mean_count: int) -> int:
    """Return about a quarter of the mean count: little padding, and few reads of each matrix."""
    size = 8
    while size * 8 <= mean_count and size < LARGEST_BLOCK:
        size *= 2
    return size


def combine(
    x: Tensor,
    routing: Routing,
    results: ExpertOutputs,
    *,
    places: int = 1,
    pass_dropped: bool = False,
) -> Tensor:
    """Return the weighted sums of the outputs for each item, (items, places, ...).

    Args:
        x: The items, (items, ...).
        routing: The decision of the router.
        results: The outputs of the experts.
        places: Number of sums per item: 1, or one for each of its assignments. Default: 1.
        pass_dropped: Whether an item replaces the output of an expert without capacity for it.
            Default: False.
    """
    count = x.shape[0] * places
    slots = routing.items if places == 1 else routing.items * places + routing.places
    weighted = results.outputs * _with_axes_of(results.weights, results.outputs)
    total = ops.segment_sum(weighted, ops.take(slots, results.rows, axis=0), count)
    total = ops.reshape(total, (x.shape[0], places, *results.outputs.shape[1:]))
    if pass_dropped:
        groups = results.groups
        weights = ops.take(routing.weights, groups.order, axis=0)
        weights = ops.where(groups.is_dropped, weights, 0.0)
        shares = ops.segment_sum(weights, ops.take(slots, groups.order, axis=0), count)
        shares = ops.reshape(shares, (x.shape[0], places))
        total = total + x[:, None] * _with_axes_of(shares, total)
    return ops.astype(total, x.dtype)


def _with_axes_of(weights: Tensor, x: Tensor) -> Tensor:
    """Append axes of length 1 until the weights have as many axes as x."""
    return ops.reshape(weights, (*weights.shape, *(1,) * (x.ndim - weights.ndim)))
