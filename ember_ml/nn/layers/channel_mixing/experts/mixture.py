"""What all mixtures of experts share."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.auxiliary_losses import report_loss
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.experts import losses
from ember_ml.nn.layers.channel_mixing.experts.combining import combine
from ember_ml.nn.layers.channel_mixing.experts.dispatch import dispatch, grouped
from ember_ml.nn.layers.channel_mixing.experts.routers import Router
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing


class Statistics(NamedTuple):
    """How a router treats some inputs."""

    load: Tensor
    """(experts,): the share of the assignments that each expert has."""
    importance: Tensor
    """(experts,): its mean probability."""
    experts_per_item: Tensor
    """How many experts work on an item in the mean, before room runs out."""
    lost: Tensor
    """The share of the assignments for which there was no room."""


class Mixture(Layer):
    """The base of the mixtures: routing, dispatch, sum and losses.

    Subclasses set `router`, `experts` and the sizes; they may write `expert_inputs`.
    """

    by_sequence: bool = False
    """Whether an expert gets whole sequences, and not positions."""
    combiner: Any = None
    """The map of the outputs side by side; their sum if None."""
    features: int
    router: Router
    experts: Any
    capacity_factor: float | None
    overflow: str
    balance_weight: float
    z_weight: float

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The features mapped.

        Args:
            x: (..., features).
            mask: (...), False where there is padding, which takes no expert's room; 0 comes out.
        """
        self.check_features(x, self.features)
        if mask is not None and mask.shape != x.shape[:-1]:
            raise ShapeError(
                f"{type(self).__name__} takes a mask of the shape {x.shape[:-1]}, not {mask.shape}"
            )
        if x.size == 0:
            return x
        items, padding = self._items(x, mask)
        routing, real = self._route(items, padding)
        if self.training:
            self._report(routing, real)
        return ops.reshape(self._run(items, padding, routing), x.shape)

    def statistics(self, x: Tensor, mask: Tensor | None = None) -> Statistics:
        """How x is routed; arguments as of the call."""
        self.check_features(x, self.features)
        routing, real = self._route(*self._items(x, mask))
        groups = grouped(routing, self._capacity(routing))
        kept, lost = [ops.astype(of, "float32").sum() for of in (groups.is_kept, groups.is_lost)]
        number = routing.logits.shape[0] if real is None else ops.astype(real, "float32").sum()
        return Statistics(
            losses.load(routing),
            losses.mean_over_items(routing.probabilities, real),
            (kept + lost) / number,
            lost / ops.maximum(kept + lost, 1.0),
        )

    def expert_inputs(self, items: Tensor, padding: Tensor | None) -> tuple[Tensor, ...]:
        """What the experts are called with, each (items, ...)."""
        return (items,) if padding is None or not self.by_sequence else (items, padding)

    def _items(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """What is routed, one after the other, and the mask of it."""
        if self.by_sequence and x.ndim != 3:
            raise ShapeError(
                f"{type(self).__name__} routes sequences (batch, time, {self.features}) to its "
                f"experts; the input has the shape {x.shape}"
            )
        if self.by_sequence:
            return x, mask
        return ops.reshape(x, (-1, self.features)), (
            None if mask is None else ops.reshape(mask, (-1,))
        )

    def _route(self, items: Tensor, padding: Tensor | None) -> tuple[Routing, Tensor | None]:
        """The routing, and which items are no padding."""
        if not self.by_sequence:
            return self.router(items, padding), padding
        if padding is None:
            return self.router(items.mean(axis=1)), None
        weights = ops.expand_dims(ops.astype(padding, items.dtype), -1)
        mean = (items * weights).sum(axis=1) / ops.maximum(weights.sum(axis=1), 1.0)
        real = ops.any(padding, axis=1)
        return self.router(mean, real), real

    def _capacity(self, routing: Routing) -> int | None:
        if self.capacity_factor is None:
            return None
        count, experts = routing.logits.shape
        return max(1, math.ceil(self.capacity_factor * self.router.top_k * count / experts))

    def _run(self, items: Tensor, padding: Tensor | None, routing: Routing) -> Tensor:
        inputs = self.expert_inputs(items, padding)
        work = dispatch(self.experts, inputs, routing, self._capacity(routing))
        passing = self.overflow == "pass" and self.capacity_factor is not None
        if self.combiner is None:
            return combine(items, routing, work, pass_lost=passing)[:, 0]
        places = self.router.choices
        parts = combine(items, routing, work, places=places, pass_lost=passing)
        parts = ops.moveaxis(parts, 1, -2)
        return self.combiner(ops.reshape(parts, (*parts.shape[:-2], places * self.features)))

    def _report(self, routing: Routing, real: Tensor | None) -> None:
        if self.balance_weight and not self.router.is_balanced:
            report_loss(self.balance_weight * losses.balance_loss(routing, real))
        if self.z_weight:
            report_loss(self.z_weight * losses.z_loss(routing, real))

    def _check_choice(self, num_experts: int, top_k: int) -> None:
        if top_k > num_experts:
            raise ArgumentError(
                f"{type(self).__name__}: top_k={top_k} must not be above num_experts={num_experts}"
            )
