"""The base class of mixtures of experts."""

from __future__ import annotations

import math
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.nn._checks import require_at_most
from ember_ml.nn.auxiliary_losses import report_loss
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.experts import routing as routings
from ember_ml.nn.layers.channel_mixing.experts.dispatch import combine, dispatch, group_by_expert
from ember_ml.nn.layers.channel_mixing.experts.expert_modules import (
    Experts,
    StackedExperts,
)
from ember_ml.nn.layers.channel_mixing.experts.routers import Router
from ember_ml.nn.layers.channel_mixing.experts.routing import Routing
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import WHOLE, Region, TensorSplit


class Statistics(NamedTuple):
    """Statistics of the routing of an input."""

    load: Tensor
    """Fraction of the assignments that each expert receives, (experts,)."""
    importance: Tensor
    """Mean probability of each expert, (experts,)."""
    experts_per_item: Tensor
    """Mean number of experts per item, before the capacity is applied."""
    lost: Tensor
    """Fraction of the assignments that exceed the capacity."""


class Mixture(Layer):
    """Base of the mixtures of experts: routing, dispatch, combination and auxiliary losses.

    Subclasses set `router` and `experts`; they may override `expert_inputs`.

    Args:
        features: Number of input and output features.
        num_experts: Number of experts.
        top_k: Number of experts per position, at most `num_experts`.
        capacity_factor: Capacity of an expert, relative to an equal share of the work.
        overflow: "drop" or "pass": how to treat a position that exceeds the capacity.
        balance_weight: Weight of the load balancing loss.
        z_weight: Weight of the z-loss.
    """

    by_sequence: bool = False
    """Whether whole sequences are routed instead of positions."""
    combiner: Dense | None = None
    """Projection of the concatenated outputs. None: the outputs are summed."""
    router: Router
    experts: Experts
    region: Region = WHOLE
    """Processes that the experts are distributed to."""
    first_expert: int = 0
    """Index of the first expert of this process."""

    def __init__(
        self,
        features: int,
        num_experts: int,
        top_k: int,
        capacity_factor: float | None,
        overflow: str,
        balance_weight: float,
        z_weight: float,
    ) -> None:
        require_at_most(self, top_k=top_k, num_experts=num_experts)
        self.features = features
        self.num_experts = num_experts
        self.capacity_factor = capacity_factor
        self.overflow = overflow
        self.balance_weight = balance_weight
        self.z_weight = z_weight

    def tensor_split(self) -> TensorSplit | None:
        """Return the split by experts, if their matrices are stacked; each process routes."""
        if not isinstance(self.experts, StackedExperts):
            return None
        stacks = {f"experts.{name}": Split(0) for name, _ in self.experts.named_parameters()}
        return TensorSplit(
            stacks, ("num_experts",), regions=("",), offsets={"first_expert": "num_experts"}
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Apply the layer.

        Args:
            x: Input, (..., features).
            mask: (...), False for padding. Padding uses no capacity, and its output is 0.
        """
        self.check_features(x, self.features)
        if mask is not None and mask.shape != x.shape[:-1]:
            raise ShapeError(
                f"{type(self).__name__}: expected a mask of shape {x.shape[:-1]}, got {mask.shape}"
            )
        if x.size == 0:
            return x
        items, mask = self._items(x, mask)
        routing, is_real = self._route(items, mask)
        if self.training:
            self._report_losses(routing, is_real)
        return ops.reshape(self._run(items, mask, routing), x.shape)

    def statistics(self, x: Tensor, mask: Tensor | None = None) -> Statistics:
        """Return statistics of the routing of an input.

        Args:
            x: Input, (..., features).
            mask: (...), False for padding.
        """
        self.check_features(x, self.features)
        routing, is_real = self._route(*self._items(x, mask))
        groups = group_by_expert(routing, self._capacity(routing))
        processed = ops.astype(groups.is_processed, "float32").sum()
        dropped = ops.astype(groups.is_dropped, "float32").sum()
        assigned = processed + dropped
        num_items = (
            routing.logits.shape[0] if is_real is None else ops.astype(is_real, "float32").sum()
        )
        return Statistics(
            routings.load(routing),
            routings.mean_over_items(routing.probabilities, is_real),
            assigned / num_items,
            dropped / ops.maximum(assigned, 1.0),
        )

    def expert_inputs(self, items: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
        """Return the arguments of the experts, (items, ...) each."""
        return (items,) if mask is None or not self.by_sequence else (items, mask)

    def _items(self, x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Return the items to route along the first axis, and their mask."""
        if self.by_sequence and x.ndim != 3:
            raise ShapeError(
                f"{type(self).__name__}: the experts mix positions and expect an input of shape "
                f"(batch, time, {self.features}), got {x.shape}"
            )
        if self.by_sequence:
            return x, mask
        return ops.reshape(x, (-1, self.features)), (
            None if mask is None else ops.reshape(mask, (-1,))
        )

    def _route(self, items: Tensor, mask: Tensor | None) -> tuple[Routing, Tensor | None]:
        """Return the routing, and which items are not padding."""
        if not self.by_sequence:
            return self.router(items, mask), mask
        if mask is None:
            return self.router(items.mean(axis=1)), None
        weights = ops.expand_dims(ops.astype(mask, items.dtype), -1)
        mean = (items * weights).sum(axis=1) / ops.maximum(weights.sum(axis=1), 1.0)
        is_real = ops.any(mask, axis=1)
        return self.router(mean, is_real), is_real

    def _capacity(self, routing: Routing) -> int | None:
        if self.capacity_factor is None:
            return None
        count, experts = routing.logits.shape
        return max(1, math.ceil(self.capacity_factor * self.router.top_k * count / experts))

    def _run(self, items: Tensor, mask: Tensor | None, routing: Routing) -> Tensor:
        places = 1 if self.combiner is None else self.router.choices
        parts = self._run_experts(items, self.expert_inputs(items, mask), routing, places)
        if self.combiner is None:
            return parts[:, 0]
        parts = ops.moveaxis(parts, 1, -2)
        return self.combiner(ops.reshape(parts, (*parts.shape[:-2], places * self.features)))

    def _run_experts(
        self, items: Tensor, inputs: tuple[Tensor, ...], routing: Routing, places: int
    ) -> Tensor:
        """Return the weighted outputs of the experts, (items, places, ...)."""
        enter = self.region.enter
        inputs = tuple(enter(x) for x in inputs)
        routing = routing._replace(weights=enter(routing.weights))
        own = range(self.first_expert, self.first_expert + self.num_experts)
        results = dispatch(self.experts, inputs, routing, self._capacity(routing), own)
        pass_dropped = self.overflow == "pass" and self.capacity_factor is not None
        total = combine(enter(items), routing, results, places=places, pass_dropped=pass_dropped)
        return self.region.leave(total)

    def _report_losses(self, routing: Routing, is_real: Tensor | None) -> None:
        if self.balance_weight and not self.router.is_balanced:
            report_loss(
                self.balance_weight * routings.balance_loss(routing, is_real), "balance_loss"
            )
        if self.z_weight:
            report_loss(self.z_weight * routings.z_loss(routing, is_real), "z_loss")
