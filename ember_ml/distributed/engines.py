"""Gradients of a model that several processes train."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ember_ml._core.tensor import Tensor
from ember_ml.distributed.world import Group
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.training.trainer.accumulation import Accumulation
from ember_ml.training.trainer.gradients import SUM, Gradients, LossGradients, numbers

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Part(NamedTuple):
    """The result of this process's part of a batch."""

    loss: float
    weight: float
    """Weight of the loss in a mean over all parts; `SUM` if the losses are summed."""
    outputs: object
    terms: Mapping[str, float] = MappingProxyType({})
    """Named losses that modules reported, which are parts of the loss."""


class Totals(NamedTuple):
    """Sums over the parts of a step."""

    loss: float
    """Sum of the weighted losses."""
    weight: float
    is_sum: bool
    """Whether the losses are summed instead of averaged."""

    @property
    def mean(self) -> float:
        """Loss of the step."""
        if self.is_sum:
            return self.loss
        return self.loss / self.weight if self.weight else math.nan

    def factor(self, part: float, size: int) -> float:
        """Return the factor on a part's gradient, if the gradients are then averaged.

        Args:
            part: Weight of the part; `SUM` if the losses are summed.
            size: Number of processes that the average is over.
        """
        if self.is_sum:
            return float(size)
        return part * size / self.weight if self.weight else 0.0


class Sums(Protocol):
    """Sum of the totals over the processes that share batches."""

    def __call__(self, loss: float, weight: float, is_sum: bool) -> Totals:
        """Return the totals of all processes."""


def weighted(loss: float, weight: float) -> float:
    """Return the share of a part in the sum of the losses.

    Args:
        loss: Loss of the part.
        weight: Its weight; `SUM` if the losses are summed.
    """
    return loss if weight == SUM else loss * weight if weight else 0.0


def totals_of(parts: Sequence[Part]) -> Totals:
    """Return the sums over parts of a step.

    Args:
        parts: The parts.
    """
    is_sum = any(part.weight == SUM for part in parts)
    loss = math.fsum(weighted(part.loss, part.weight) for part in parts)
    weight = 0.0 if is_sum else math.fsum(part.weight for part in parts)
    return Totals(loss, weight, is_sum)


def terms_of(parts: Sequence[Part]) -> dict[str, float]:
    """Return the means of the named losses over parts of a step; sums if the losses are summed.

    Args:
        parts: The parts.
    """
    totals = totals_of(parts)
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part.terms.items():
            sums[name] = sums.get(name, 0.0) + weighted(value, part.weight)
    count = 1.0 if totals.is_sum else totals.weight
    return {name: value / count if count else math.nan for name, value in sums.items()}


def weight_unit(weight: float, group: Group) -> float:
    """Return a power of 2 near the mean weight, the same in each process.

    Weights in this unit keep gradients in the range of their dtype, without rounding.

    Args:
        weight: Weight of this process's part of a batch.
        group: The processes that share batches.
    """
    mean = group.sums([weight])[0] / group.size
    return 2.0 ** round(math.log2(mean)) if math.isfinite(mean) and mean > 0 else 1.0


class Engine(Protocol):
    """Computes the gradients of a step, which may have several batches."""

    def adopt(self, trainer: Trainer) -> None:
        """Prepare for the steps of a trainer."""

    def add(
        self, gradients: LossGradients, batch: object, scale: float, sums: Sums | None, last: bool
    ) -> Part:
        """Add the gradients of this process's part of a batch.

        Args:
            gradients: The loss and what to differentiate with respect to.
            batch: The part of the batch.
            scale: Factor on the gradients, against underflow.
            sums: Sum of the totals, if the step has no other batch.
            last: Whether the step has no other batch after this one.
        """

    def take(self, parameters: Sequence[Parameter], totals: Totals) -> Gradients:
        """Return the gradients of the parts of parameters that this process has.

        Args:
            parameters: The parameters.
            totals: Sums over all parts of the step.
        """


class AveragingEngine:
    """Ember's own gradients, averaged over the processes that share batches.

    Args:
        group: These processes.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._local = Accumulation()
        self._weight = 0.0

    def adopt(self, trainer: Trainer) -> None:
        """Do nothing: the gradients are those of the trainer's `compute`."""

    def add(
        self, gradients: LossGradients, batch: object, scale: float, sums: Sums | None, last: bool
    ) -> Part:
        """Add the gradients of this process's part of a batch."""
        result = gradients(batch, scale)
        assert result.weight is not None, "the runner asks for weights"
        weight = float(result.weight)
        for buffer, value in zip(gradients.buffers, result.buffers, strict=True):
            buffer.become(value)
        loss, terms = float(result.loss), numbers(result.terms)
        self._local.add(loss, result.gradients, weight, terms)
        self._weight += 0.0 if weight == SUM else weight
        return Part(loss, weight, result.outputs, terms)

    def take(self, parameters: Sequence[Parameter], totals: Totals) -> Gradients:
        """Return the gradients of the parts of parameters that this process has."""
        local, weight = self._local.gradients, self._weight
        self._local, self._weight = Accumulation(), 0.0
        if self._group.size == 1:
            return local
        factor = totals.factor(weight, self._group.size)
        present = [g * factor for g in local if g is not None]
        means = iter(self._group.mean_gradients(present))
        return [None if g is None else next(means) for g in local]


class WrappingEngine:
    """Gradients that the framework averages during the backward pass.

    Args:
        modules: The wrapped model.
        group: The processes that share batches.
    """

    def __init__(self, modules: Any, group: Group) -> None:
        self._modules = modules
        self._group = group
        self._unit: float | None = None
        self._is_scaled = False

    def adopt(self, trainer: Trainer) -> None:
        """Do nothing: the gradients are those of the trainer's `compute`."""

    def add(
        self, gradients: LossGradients, batch: object, scale: float, sums: Sums | None, last: bool
    ) -> Part:
        """Add the gradients of this process's part of a batch."""
        weight = math.nan
        self._is_scaled = sums is not None

        def scaled(loss: Tensor, others: tuple[Any, ...]) -> Tensor:
            nonlocal weight
            weight = float(others[1])
            if sums is None:
                return loss * (self._share(weight) * scale)
            totals = sums(weighted(float(loss), weight), weight, weight == SUM)
            return loss * (totals.factor(weight, self._group.size) * scale)

        compute = functools.partial(gradients.losses, batch)
        loss, (_, _, outputs, terms) = self._modules.differentiate(compute, scaled, last)
        return Part(float(loss), weight, outputs, numbers(terms))

    def _share(self, weight: float) -> float:
        """Return the weight of a part in units of about the first weight."""
        if weight == SUM:
            return 1.0
        if self._unit is None:
            self._unit = weight_unit(weight, self._group)
        return weight / self._unit

    def take(self, parameters: Sequence[Parameter], totals: Totals) -> Gradients:
        """Return the gradients of the parts of parameters that this process has."""
        taken: Gradients = self._modules.take_gradients(parameters)
        if self._is_scaled:
            return taken
        factor = totals.factor(SUM if totals.is_sum else self._unit or 1.0, self._group.size)
        return [None if g is None else g * factor for g in taken]


def mean_buffers(buffers: Sequence[Buffer], group: Group) -> None:
    """Replace buffers by their means over the processes; integers are those of the first process.

    Args:
        buffers: Buffers of a model.
        group: The processes.
    """
    for buffer in buffers:
        if buffer.dtype.is_floating:
            buffer.assign(group.mean_gradients([buffer.value()])[0])
        else:
            buffer.assign(group.broadcast(buffer.value()))
