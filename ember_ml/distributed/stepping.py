"""The step of a trainer whose model several processes train."""

from __future__ import annotations

import math
import signal
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ember_ml._core.errors import ArgumentError
from ember_ml.distributed.engines import Engine, Part, Totals, terms_of, totals_of
from ember_ml.nn.parameter import Parameter
from ember_ml.training.trainer.gradients import Gradients
from ember_ml.training.trainer.interrupt import Interrupt
from ember_ml.training.trainer.step import StepResult, StepRunner

if TYPE_CHECKING:
    from ember_ml.training.trainer.trainer import Trainer

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Processes(Protocol):
    """What a step asks of the processes that train together."""

    engine: Engine
    interrupt: Interrupt | None
    agreed_signal: int | None

    def sums(self, values: list[float]) -> list[float]:
        """Return the sums of numbers over the processes that share batches."""

    def norm(self, parameters: list[Parameter], gradients: Gradients) -> float:
        """Return the norm of the gradients of all processes together."""

    def during(self, what: str, step: int | None = None) -> AbstractContextManager[None]:
        """Return a context that explains which process hangs or has ended if a collective fails."""

    def average_buffers(self) -> None:
        """Average the buffers over the processes that share batches."""

    def keep_buffers(self) -> None:
        """Remember the values of the buffers before a step."""

    def restore_buffers(self) -> None:
        """Set the buffers to their values before the step."""


class ParallelRunner(StepRunner):
    """Runs this process's parts of batches, and updates its parts of the parameters.

    Losses and norms are those of all processes, so that all of them decide the same.

    Args:
        trainer: The trainer.
        processes: The processes that train together.
    """

    def __init__(self, trainer: Trainer, processes: Processes) -> None:
        self._processes = processes
        self._parts: list[Part] = []
        self._totals: Totals | None = None
        self._measured: list[tuple[object, object]] = []
        self._last_batch: object = None
        if trainer.config.compile:
            raise ArgumentError("Trainer: compile=True does not work with a strategy")
        super().__init__(trainer)

    def _weighs(self) -> bool:
        return True

    def _prepare_for(self, backend: str) -> None:
        super()._prepare_for(backend)
        self._policy = self._whole = None

    def _run(self, batch: object) -> StepResult | None:
        if self._optimizer.add_unfrozen():
            raise ArgumentError(
                "Trainer: parameters cannot be unfrozen while several processes train; create a "
                "new trainer"
            )
        if not self.group.count:
            self._processes.keep_buffers()
        single = self._config.accumulate == 1
        scale = self.scale.value if self.scale else 1.0
        sums = self._sum if single else None
        with self._processes.during("gradients", self._trainer.step + 1):
            part = self._processes.engine.add(self._gradients, batch, scale, sums, self._is_last())
        self._parts.append(part)
        if self._trainer.train_metrics is not None:
            self._measured.append((batch, part.outputs))
        self._last_batch = batch
        self.group.count += 1
        return self.complete() if self.group.count >= self._config.accumulate else None

    def _is_last(self) -> bool:
        """Return whether the step has no other batch after this one.

        If that is not known, each batch counts as the last one: gradients are exchanged too often,
        which changes nothing else.
        """
        loader = self._trainer.loader
        if self.group.count + 1 >= self._config.accumulate or loader is None:
            return True
        return loader.num_batches is None or loader.state_dict()["batches"] >= loader.num_batches

    def _sum(self, loss: float, weight: float, is_sum: bool) -> Totals:
        """Return the totals of all processes, which also agree on a signal here."""
        received = self._processes.interrupt
        flags = [float(received is not None and received.signal == each) for each in _SIGNALS]
        weight = 0.0 if is_sum else weight
        loss, weight, *flags = self._processes.sums([loss, weight, *flags])
        agreed = [each for each, flag in zip(_SIGNALS, flags, strict=True) if flag]
        self._processes.agreed_signal = int(agreed[0]) if agreed else None
        self._totals = Totals(loss, weight, is_sum)
        return self._totals

    def complete(self) -> StepResult | None:
        """Update with the batches so far, and return the result; None if there are none."""
        if not self.group.count:
            return None
        with self._processes.during("update", self._trainer.step + 1):
            return self._complete()

    def _complete(self) -> StepResult:
        totals = self._totals
        if totals is None:
            totals = self._sum(*totals_of(self._parts))
        parameters = self._optimizer.parameters
        gradients = self._processes.engine.take(parameters, totals)
        norm = self._processes.norm(parameters, gradients)
        parts, measured = self._parts, self._measured
        self.drop_remainder()
        return self._finish(totals.mean, gradients, norm, parts, measured)

    def _finish(
        self,
        loss: float,
        gradients: Gradients,
        norm: float,
        parts: list[Part],
        measured: list[tuple[object, object]],
    ) -> StepResult:
        """Update the parameters, unless the loss or the gradients are not finite."""
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._processes.restore_buffers()
            if self.scale is not None and math.isfinite(loss) and self.scale.can_shrink():
                self.scale.overflowed()
            else:
                is_own = not all(math.isfinite(part.loss) for part in parts)
                is_elsewhere = not (is_own or math.isfinite(loss))
                problem = self._problem(self._last_batch, loss, gradients, is_elsewhere)
                self._trainer.refuse_batch(problem)
            return StepResult(loss, norm, updated=False)
        if self.scale is not None:
            scale = self.scale.value
            self.scale.succeeded()
            gradients = [None if g is None else g / scale for g in gradients]
            norm /= scale
        self._processes.average_buffers()
        for batch, outputs in measured:
            self._measure(batch, outputs)
        return self._update(loss, gradients, norm, terms_of(parts))

    def drop_remainder(self) -> None:
        """Discard accumulated gradients."""
        super().drop_remainder()
        self._parts, self._totals, self._measured = [], None, []
