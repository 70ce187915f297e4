"""What a callback is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError
from ember_ml.registry.base import close_matches

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Callback:
    """Called by a trainer as it goes; subclasses write what they need.

    `record` is what the trainer knows at that point: step, epoch, loss, and after an evaluation
    its "val_..." values. A callback may add to it, and set `trainer.should_stop`.
    """

    def on_fit_start(self, trainer: Trainer) -> None:
        """Before the first step."""

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """After a step."""

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """After an epoch and its evaluation."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """After the last step, also when an error ended the training."""

    def state_dict(self) -> dict[str, Any]:
        """What must survive a restart, as plain data."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""


class Best:
    """The best value of something that is watched.

    Args:
        monitor: the name in a record.
        mode: "min" or "max".
        min_delta: by how much a value must be better to count.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode must be 'min' or 'max', not {mode!r}")
        self.monitor = monitor
        self.value: float | None = None
        self._sign = 1.0 if mode == "min" else -1.0
        self._min_delta = min_delta

    def improves(self, record: dict[str, float]) -> bool:
        """Whether the record is the best so far, which it then is."""
        if self.monitor not in record:
            raise ArgumentError(
                f"nothing is named {self.monitor!r} at the end of an epoch"
                f"{close_matches(self.monitor, record)}; there are {', '.join(sorted(record))}"
            )
        value = record[self.monitor]
        better = self.value is None or (
            self._sign * value < self._sign * self.value - self._min_delta
        )
        if better:
            self.value = value
        return better
