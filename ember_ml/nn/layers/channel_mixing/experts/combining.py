"""The outputs of an item's experts brought together."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.channel_mixing.experts.dispatch import Work
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing


def combine(
    x: Tensor, routing: Routing, work: Work, *, places: int = 1, pass_lost: bool = False
) -> Tensor:
    """The outputs times their weights, summed for each item: (items, places, ...).

    Args:
        x: (items, ...), what was to be worked on.
        routing: who was to work on what.
        work: what the experts did.
        places: how many sums an item has: one, or one for each of its assignments.
        pass_lost: whether an item for which an expert had no room counts as its output.
    """
    count = x.shape[0] * places
    slots = routing.items if places == 1 else routing.items * places + routing.places
    weighted = work.outputs * _beside(work.weights, work.outputs)
    total = ops.segment_sum(weighted, ops.take(slots, work.rows, axis=0), count)
    total = ops.reshape(total, (x.shape[0], places, *work.outputs.shape[1:]))
    if pass_lost:
        groups = work.groups
        lost = ops.where(groups.is_lost, ops.take(routing.weights, groups.order, axis=0), 0.0)
        shares = ops.segment_sum(lost, ops.take(slots, groups.order, axis=0), count)
        total = total + x[:, None] * _beside(ops.reshape(shares, (x.shape[0], places)), total)
    return ops.astype(total, x.dtype)


def _beside(weights: Tensor, x: Tensor) -> Tensor:
    """The weights with as many axes as x."""
    return ops.reshape(weights, (*weights.shape, *(1,) * (x.ndim - weights.ndim)))
