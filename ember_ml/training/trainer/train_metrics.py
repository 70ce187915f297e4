"""Metrics of the training batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError
from ember_ml.training.metrics import Metric

if TYPE_CHECKING:
    from ember_ml.training.metrics.state import State
    from ember_ml.training.trainer.trainer import Trainer

RESERVED = {"step", "epoch", "loss", "learning_rate", "grad_norm", "seconds", "skipped"}
"""Keys of the records that neither a metric nor a named loss may have."""


class TrainMetrics:
    """Metrics of the training batches of a step, and of an epoch.

    Args:
        metrics: Metrics to compute, which are copied. Their names are those in the records.
        merge: Adds the batches of other processes to metrics. Default: there are none.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        merge: Callable[[Sequence[Metric]], None] | None = None,
    ) -> None:
        if not metrics:
            raise ArgumentError("Trainer: train_metrics=True needs metrics")
        for metric in metrics:
            if metric.name in RESERVED:
                raise ArgumentError(
                    f"Trainer: with train_metrics=True a metric must not be named {metric.name!r}, "
                    "which is already a key of the records"
                )
        self._merge = merge
        self._step = _copies(metrics)
        self._epoch = _copies(metrics)

    def names(self) -> list[str]:
        """Return the names of the metrics."""
        return [metric.name for metric in self._step]

    def states(self) -> list[State]:
        """Return the counters of the step and of the epoch."""
        return [metric._total() for metric in (*self._step, *self._epoch)]

    def add(self, trainer: Trainer, batch: object, outputs: object) -> None:
        """Add a batch.

        Args:
            trainer: Trainer whose `measure` updates the metrics.
            batch: The batch.
            outputs: Outputs that `compute` returned.
        """
        own = trainer.metrics
        try:
            for trainer.metrics in (self._step, self._epoch):
                trainer.measure(batch, outputs)
        finally:
            trainer.metrics = own

    def end_step(self) -> dict[str, float]:
        """Return the values of the step's batches, and start the next step."""
        return self._values(self._step)

    def end_epoch(self) -> dict[str, float]:
        """Return the values of the epoch's batches, and start the next epoch."""
        for metric in self._step:
            metric.reset()
        return self._values(self._epoch)

    def _values(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """Return the values that are numbers, and reset the metrics."""
        if self._merge is not None:
            self._merge(metrics)
        results = {metric.name: metric.compute() for metric in metrics}
        for metric in metrics:
            metric.reset()
        return {name: float(x) for name, x in results.items() if isinstance(x, (int, float))}

    def reset(self) -> None:
        """Discard the batches so far."""
        for metric in (*self._step, *self._epoch):
            metric.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return the counters as plain data, those of all processes together."""
        counted = {"step": self._step, "epoch": self._epoch}
        if self._merge is not None:
            counted = {name: copy.deepcopy(metrics) for name, metrics in counted.items()}
            for metrics in counted.values():
                self._merge(metrics)
        return {
            name: [metric.state_dict() for metric in metrics] for name, metrics in counted.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the counters of metrics that the state has.

        Args:
            state: Result of `state_dict`.
        """
        self._step, self._epoch = (
            _restored(metrics, state[name])
            for name, metrics in (("step", self._step), ("epoch", self._epoch))
        )


def _copies(metrics: Sequence[Metric]) -> list[Metric]:
    copies = copy.deepcopy(list(metrics))
    for metric in copies:
        metric.reset()
    return copies


def _restored(metrics: Sequence[Metric], states: Sequence[Mapping[str, Any]]) -> list[Metric]:
    """Return copies with the counters of the states, by position and name."""
    copies = _copies(metrics)
    for metric, state in zip(copies, states, strict=False):
        if state["name"] == metric.name and state["counters"]:
            metric.load_state_dict(state)
    return copies
