"""Checkpoints as a training goes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError
from ember_ml.training.callbacks.base import Best, Callback

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Checkpoint(Callback):
    """Saves the training in folders, to go on from or to load the model from.

    `last` is the newest state; with `monitor` the best model is in `best`. `ember_ml.load` gives
    the model with the weights that were evaluated, also if they are averages.

    Args:
        folder: where the checkpoints are.
        every_steps: how often; at the end of each epoch if not given.
        keep: how many older ones to keep as `step-...`, beside `last`.
        monitor: what decides which is the best, such as "val_loss".
        mode: whether it is best when "min" or "max".
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every_steps: int | None = None,
        keep: int = 0,
        monitor: str | None = None,
        mode: str = "min",
    ) -> None:
        if every_steps is not None and every_steps < 1:
            raise ArgumentError(f"Checkpoint: every_steps must be at least 1, not {every_steps}")
        if keep < 0:
            raise ArgumentError(f"Checkpoint: keep must not be negative, but is {keep}")
        self.folder = Path(folder)
        self.every_steps = every_steps
        self.keep = keep
        self.best = None if monitor is None else Best(monitor, mode)

    def on_fit_start(self, trainer: Trainer) -> None:
        """Make the folder: a place that cannot be written to is better known before an epoch."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK):
            raise PermissionError(f"Checkpoint: {self.folder} cannot be written to")

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Save, if it is time."""
        if self.every_steps is not None and trainer.step % self.every_steps == 0:
            self._save(trainer)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Save, and see whether it is the best."""
        if self.best is not None and self.best.improves(record):
            trainer.save(self.folder / "best")
        if self.every_steps is None:
            self._save(trainer)

    def _save(self, trainer: Trainer) -> None:
        trainer.save(self.folder / "last")
        if self.keep:
            trainer.save(self.folder / f"step-{trainer.step:08d}")
            for old in sorted(self.folder.glob("step-*"))[: -self.keep]:
                shutil.rmtree(old, ignore_errors=True)

    def state_dict(self) -> dict[str, Any]:
        """The best value so far."""
        return {"best": None if self.best is None else self.best.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the best value."""
        if self.best is not None:
            self.best.value = state["best"]
