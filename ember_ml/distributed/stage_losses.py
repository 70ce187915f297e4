"""Losses of the microbatches of a batch in one stage of a pipeline."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.distributed.engines import Part, Totals, totals_of, weighted
from ember_ml.nn.auxiliary_losses import ReportedLosses
from ember_ml.training.losses.base import reported_weights
from ember_ml.training.trainer.gradients import SUM, LossGradients


class Microbatch(NamedTuple):
    """A part of a batch."""

    batch: object
    targets: Any
    options: Mapping[str, Any]
    """Keyword arguments of the loss."""


class StageLosses:
    """The losses of the microbatches of a batch, and what a stage differentiates.

    The last stage has the loss of the trainer. Every stage may have layers that report losses; they
    have the weight of their microbatch.

    Args:
        loss: Function of the model's output and the targets.
        gradients: The trainer's precision and weights of batches.
        factor: Function of the weight of a microbatch that returns the factor on its loss.
        microbatches: The parts of the batch.
        output: Shape and dtype of the model's output for a microbatch.
        is_last: Whether this is the last stage.
    """

    def __init__(
        self,
        loss: Callable[..., Tensor],
        gradients: LossGradients,
        factor: Callable[[float], float],
        microbatches: Sequence[Microbatch],
        output: tuple[Sequence[int], str],
        is_last: bool,
    ) -> None:
        self._loss = loss
        self._gradients = gradients
        self._factor = factor
        self._microbatches = microbatches
        self._output = output
        self._is_last = is_last
        self._parts: list[Part] = []
        self._reported: dict[int, ReportedLosses] = {}
        self._auxiliary = 0.0
        self.terms: dict[str, float] = {}
        """Weighted sums of the named losses."""

    def final(self, output: Tensor, number: int) -> Tensor:
        """Return the value to differentiate for an output of the last stage.

        Args:
            output: The output.
            number: Number of the microbatch.
        """
        loss, weight = self._weighted_loss(output, number)
        if number in self._reported:
            loss = loss + self._sum(self._reported.pop(number), weight)
        self._parts.append(Part(float(loss), weight, None))
        return loss * self._factor(weight)

    def reported(self, losses: ReportedLosses, number: int) -> Tensor | None:
        """Return the value to differentiate for losses that the layers of this stage report.

        Args:
            losses: The losses.
            number: Number of the microbatch.

        Returns:
            The value; None in the last stage, where that of `final` contains it.
        """
        if self._is_last:
            self._reported[number] = losses
            return None
        shape, dtype = self._output
        # the weight depends on the targets and the mask, not on the values of the output
        _, weight = self._weighted_loss(ops.zeros(tuple(shape), dtype=dtype), number)
        value = self._sum(losses, weight)
        self._auxiliary += weighted(float(value), weight)
        return value * self._factor(weight)

    def _sum(self, losses: ReportedLosses, weight: float) -> Tensor:
        """Return the sum of reported losses, and record those that have a name.

        A batch has their mean over its microbatches: if the losses of microbatches are added, each
        has its share of that mean.
        """
        share = 1 / len(self._microbatches) if weight == SUM else 1.0
        values = [self._gradients.widened(loss) * share for loss in losses]
        for name, value in zip(losses.names, values, strict=True):
            if name:
                self.terms[name] = self.terms.get(name, 0.0) + weighted(float(value), weight)
        return functools.reduce(lambda a, b: a + b, values)

    def _weighted_loss(self, output: Tensor, number: int) -> tuple[Tensor, float]:
        """Return the loss of a microbatch, and its weight."""
        part = self._microbatches[number]
        with reported_weights() as weights:
            loss = self._gradients.widened(self._loss(output, part.targets, **part.options))
        return loss, float(self._gradients.weight_of(part.batch, weights, loss))

    def totals(self) -> Totals:
        """Return the sums over the microbatches, as far as this stage knows them."""
        totals = totals_of(self._parts)
        return totals._replace(loss=totals.loss + self._auxiliary)
