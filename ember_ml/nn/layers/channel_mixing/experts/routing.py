"""Which expert works on which item."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.tensor import Tensor


class Routing(NamedTuple):
    """What a router decided: a row of assignments, those of higher priority first.

    An item is a position, or a whole sequence.
    """

    items: Tensor
    """(assignments,): the item of each."""
    experts: Tensor
    """(assignments,): its expert, or the number of experts where nobody is to work."""
    weights: Tensor
    """(assignments,): the weight of the expert's output; 0 where nobody works."""
    places: Tensor
    """(assignments,): which of the item's assignments it is."""
    logits: Tensor
    """(items, experts)."""
    probabilities: Tensor
    """(items, experts): shares of the experts, which add up to 1."""


def by_item(
    experts: Tensor, weights: Tensor, logits: Tensor, probabilities: Tensor, mask: Tensor | None
) -> Routing:
    """The routing in which each item has chosen (items, choices) experts, the best first."""
    experts = ops.stop_gradient(experts)
    ones = ops.ones_like(experts)
    # All first choices stand before the second ones, and so come first where room is short.
    rows = [ops.cumsum(ones, axis=0) - 1, experts, weights, ops.cumsum(ones, axis=1) - 1]
    items, experts, weights, places = [ops.reshape(ops.transpose(row), (-1,)) for row in rows]
    routing = Routing(items, experts, weights, places, logits, probabilities)
    return routing if mask is None else without_padding(routing, mask)


def by_expert(
    items: Tensor, weights: Tensor, logits: Tensor, probabilities: Tensor, mask: Tensor | None
) -> Routing:
    """The routing in which each expert has chosen (experts, choices) items."""
    items = ops.stop_gradient(items)
    experts = ops.reshape(ops.cumsum(ops.ones_like(items), axis=0) - 1, (-1,))
    items, weights = ops.reshape(items, (-1,)), ops.reshape(weights, (-1,))
    routing = Routing(items, experts, weights, experts, logits, probabilities)
    return routing if mask is None else without_padding(routing, mask)


def without_padding(routing: Routing, mask: Tensor) -> Routing:
    """The routing in which nobody works on items where the mask is False."""
    real = ops.take(mask, routing.items, axis=0)
    nobody = routing.logits.shape[1]
    return routing._replace(
        experts=ops.where(real, routing.experts, nobody),
        weights=ops.where(real, routing.weights, 0.0),
    )
