"""The callback that reports a training run to the pruner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ember_ml.training.callbacks.base import Callback
from ember_ml.training.tuning.errors import TuningError
from ember_ml.training.tuning.trial import Trial

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class PruneTrial(Callback):
    """Reports a value of each evaluation, and ends `fit` when the pruner says so.

    Args:
        trial: Trial that the training run belongs to.
        monitor: Name of the reported value, such as "val_accuracy".
        unit: Unit of the reported steps: "step" or "epoch". Default: "step".

    Attributes:
        pruned: Whether the pruner ended training.
    """

    def __init__(
        self,
        trial: Trial,
        monitor: str = "val_accuracy",
        unit: Literal["step", "epoch"] = "step",
    ) -> None:
        if unit not in ("step", "epoch"):
            raise TuningError(f"PruneTrial: unit must be 'step' or 'epoch', not {unit!r:.60}")
        self.trial = trial
        self.monitor = monitor
        self.unit = unit
        self.pruned = False
        self._reported = 0  # step of the last report

    def monitored(self) -> str:
        """Return the name of the reported value."""
        return self.monitor

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Report if the step ended with an evaluation."""
        if self.unit == "step" and self.monitor.startswith("val_") and self.monitor in record:
            self._report(trainer, record)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Report, unless the last step did."""
        if self._reported != trainer.step and self.monitor in record:
            self._report(trainer, record)

    def _report(self, trainer: Trainer, record: dict[str, float]) -> None:
        self._reported = trainer.step
        at = trainer.step if self.unit == "step" else trainer.epoch
        if self.trial.report(at, record[self.monitor]):
            self.pruned = trainer.should_stop = True
