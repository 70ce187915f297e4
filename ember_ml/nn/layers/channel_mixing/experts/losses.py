"""Losses that keep a router in order."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing


def load(routing: Routing) -> Tensor:
    """The share of the assignments that each expert has."""
    count = routing.logits.shape[1]
    ones = ops.ones_like(routing.experts, dtype=routing.logits.dtype)
    totals = ops.segment_sum(ones, routing.experts, count + 1)[:count]
    return totals / ops.maximum(totals.sum(), 1.0)


def mean_over_items(values: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of (items, ...) over the items that are no padding."""
    if mask is None:
        return values.mean(axis=0)
    real = ops.reshape(ops.astype(mask, values.dtype), (-1,) + (1,) * (values.ndim - 1))
    return (values * real).sum(axis=0) / ops.maximum(real.sum(), 1.0)


def balance_loss(routing: Routing, mask: Tensor | None = None) -> Tensor:
    r"""1 if all experts have as much to do as the others, the number of experts if one does all.

    .. math:: E \sum_e f_e P_e

    with f the shares of the assignments and P the mean probabilities.

    Reference: Fedus et al., "Switch Transformers", 2021.
    """
    means = mean_over_items(routing.probabilities, mask)
    return means.shape[0] * (load(routing) * means).sum()


def z_loss(routing: Routing, mask: Tensor | None = None) -> Tensor:
    """The mean square of the logits' logsumexp, which keeps them small.

    Reference: Zoph et al., "ST-MoE: Designing Stable and Transferable Sparse Expert Models", 2022.
    """
    return mean_over_items(ops.logsumexp(routing.logits, axis=-1) ** 2, mask)
