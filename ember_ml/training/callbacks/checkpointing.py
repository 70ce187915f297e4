"""Checkpoints during training."""

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
    """Saves checkpoints, to resume the training or to load the model.

    `last` is the newest checkpoint; with `monitor`, `best` is the best one. `ember_ml.load` returns
    the model with the weights that were evaluated, which may be averages.

    Args:
        folder: Folder of the checkpoints.
        every_steps: Steps from one checkpoint to the next. Default: one at the end of each epoch.
        keep: Number of older checkpoints to keep as `step-...`, in addition to `last`.
        monitor: Value that selects the best checkpoint, such as "val_loss".
        mode: "min" if lower is better, "max" if higher is better.
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
        """Create the folder, and raise an error if it is not writable."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK):
            raise PermissionError(f"Checkpoint: {self.folder} is not writable")

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Save every `every_steps` steps."""
        if self.every_steps is not None and trainer.step % self.every_steps == 0:
            self._save(trainer)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Save, also as the best checkpoint if it is."""
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
        """Return the best value so far."""
        return {"best": None if self.best is None else self.best.value}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the best value."""
        if self.best is not None:
            self.best.value = state["best"]
