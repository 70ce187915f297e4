"""Assignments of items to experts, and the auxiliary losses of a router."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.tensor import Tensor


class Routing(NamedTuple):
    """The decision of a router: assignments of items to experts, by decreasing priority.

    An item is a position or a whole sequence.
    """

    items: Tensor
    """Item of each assignment, (assignments,)."""
    experts: Tensor
    """Expert of each assignment, (assignments,); `num_experts` for an empty assignment."""
    weights: Tensor
    """Weight of the expert's output, (assignments,); 0 for an empty assignment."""
    places: Tensor
    """Index of the assignment among those of its item, (assignments,)."""
    logits: Tensor
    """Logits of the router, (items, experts)."""
    probabilities: Tensor
    """Probabilities of the experts, (items, experts); they sum to 1 for each item."""


def route_by_item(
    experts: Tensor, weights: Tensor, logits: Tensor, probabilities: Tensor, mask: Tensor | None
) -> Routing:
    """Return the routing in which each item has chosen its experts.

    Args:
        experts: Chosen experts, best first, (items, choices).
        weights: Their weights, (items, choices).
        logits: Logits of the router, (items, experts).
        probabilities: Probabilities of the experts, (items, experts).
        mask: (items,), False for padding.
    """
    experts = ops.stop_gradient(experts)
    ones = ops.ones_like(experts)
    # All first choices precede all second choices, so they have priority if capacity is short.
    rows = [ops.cumsum(ones, axis=0) - 1, experts, weights, ops.cumsum(ones, axis=1) - 1]
    items, experts, weights, places = [ops.reshape(ops.transpose(row), (-1,)) for row in rows]
    routing = Routing(items, experts, weights, places, logits, probabilities)
    return routing if mask is None else _without_padding(routing, mask)


def route_by_expert(
    items: Tensor, weights: Tensor, logits: Tensor, probabilities: Tensor, mask: Tensor | None
) -> Routing:
    """Return the routing in which each expert has chosen its items.

    Args:
        items: Chosen items, (experts, choices).
        weights: Their weights, (experts, choices).
        logits: Logits of the router, (items, experts).
        probabilities: Probabilities of the experts, (items, experts).
        mask: (items,), False for padding.
    """
    items = ops.stop_gradient(items)
    experts = ops.reshape(ops.cumsum(ops.ones_like(items), axis=0) - 1, (-1,))
    items, weights = ops.reshape(items, (-1,)), ops.reshape(weights, (-1,))
    routing = Routing(items, experts, weights, experts, logits, probabilities)
    return routing if mask is None else _without_padding(routing, mask)


def _without_padding(routing: Routing, mask: Tensor) -> Routing:
    """Return the routing with empty assignments for the items where the mask is False."""
    is_real = ops.take(mask, routing.items, axis=0)
    num_experts = routing.logits.shape[1]
    return routing._replace(
        experts=ops.where(is_real, routing.experts, num_experts),
        weights=ops.where(is_real, routing.weights, 0.0),
    )


def load(routing: Routing) -> Tensor:
    """Return the fraction of the assignments that each expert receives, (experts,)."""
    num_experts = routing.logits.shape[1]
    ones = ops.ones_like(routing.experts, dtype=routing.logits.dtype)
    totals = ops.segment_sum(ones, routing.experts, num_experts + 1)[:num_experts]
    return totals / ops.maximum(totals.sum(), 1.0)


def mean_over_items(values: Tensor, mask: Tensor | None) -> Tensor:
    """Return the mean of (items, ...) over the items that are not padding."""
    if mask is None:
        return values.mean(axis=0)
    is_real = ops.reshape(ops.astype(mask, values.dtype), (-1,) + (1,) * (values.ndim - 1))
    return (values * is_real).sum(axis=0) / ops.maximum(is_real.sum(), 1.0)


def balance_loss(routing: Routing, mask: Tensor | None = None) -> Tensor:
    r"""Return the load balancing loss: 1 for equal loads, `num_experts` if one expert does all.

    .. math:: E \sum_e f_e P_e

    f are the fractions of the assignments and P the mean probabilities of the E experts.

    Args:
        routing: The decision of the router.
        mask: (items,), False for padding.

    Reference: Fedus et al., "Switch Transformers", 2021.
    """
    means = mean_over_items(routing.probabilities, mask)
    return means.shape[0] * (load(routing) * means).sum()


def z_loss(routing: Routing, mask: Tensor | None = None) -> Tensor:
    """Return the mean squared logsumexp of the logits, which penalizes large logits.

    Args:
        routing: The decision of the router.
        mask: (items,), False for padding.

    Reference: Zoph et al., "ST-MoE: Designing Stable and Transferable Sparse Expert Models", 2022.
    """
    return mean_over_items(ops.logsumexp(routing.logits, axis=-1) ** 2, mask)
