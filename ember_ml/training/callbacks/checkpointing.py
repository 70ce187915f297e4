"""Checkpoints during training."""

from __future__ import annotations

import os
import re
import secrets
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError
from ember_ml._core.folders import remove_folder
from ember_ml.data.errors import check_integer
from ember_ml.nn.checkpoint import (
    KIND,
    CheckpointError,
    check_target,
    open_checkpoint,
    read_json,
)
from ember_ml.training.callbacks.base import Best, Callback, callback_states, check_interval

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Checkpoint(Callback):
    """Saves checkpoints, to resume training or to load the model.

    `last` is the newest checkpoint; with `monitor`, `best` is the best one: of the epochs and, with
    `fit(validate_every=n)` and a "val_..." value, of all evaluations. `ember_ml.load` returns the
    model with the weights that were evaluated, which may be averages. If a checkpoint cannot be
    written, for example because the disk is full, a warning says so, the previous checkpoint stays,
    and training continues.

    Args:
        folder: Folder of the checkpoints.
        every_steps: Steps from one checkpoint to the next. Default: one at the end of each epoch.
        keep: Number of older checkpoints to keep as `step-...`, in addition to `last`. Only
            checkpoints of this run are deleted, the oldest first.
        monitor: Value that selects the best checkpoint, such as "val_loss".
        mode: "min" if lower is better, "max" if higher is better.
    """

    saves = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every_steps: int | None = None,
        keep: int = 0,
        monitor: str | None = None,
        mode: str = "min",
    ) -> None:
        self.folder = Path(folder)
        self.every_steps = check_interval("Checkpoint", every_steps)
        self.keep = check_integer("Checkpoint", "keep", keep, least=0)
        self.best = None if monitor is None else Best(monitor, mode)
        self._kept: list[str] = []
        self._run = secrets.token_hex(8)  # identifies the checkpoints of this run

    def monitored(self) -> str | None:
        """Return the name of the value that selects the best checkpoint."""
        return None if self.best is None else self.best.monitor

    def on_fit_start(self, trainer: Trainer) -> None:
        """Create the folder, and raise an error if checkpoints cannot be written to it."""
        callback_states(trainer.callbacks)  # raises an error if one cannot be saved
        self.folder = self.folder.absolute()  # also if a callback changes the working directory
        self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK):
            raise PermissionError(f"Checkpoint: {self.folder} is not writable")
        for name in ("last",) if self.best is None else ("last", "best"):
            check_target(trainer.model, self.folder / name)

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Save every `every_steps` steps, and the best checkpoint after an evaluation."""
        if self.best is not None and self.best.is_validated(record):
            self._save_best(trainer, self.best, record)
        if self.every_steps is not None and trainer.step % self.every_steps == 0:
            self._save(trainer)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Save, also as the best checkpoint if it is."""
        if self.best is not None:
            self._save_best(trainer, self.best, record)
        if self.every_steps is None:
            self._save(trainer)

    def _save_best(self, trainer: Trainer, best: Best, record: dict[str, float]) -> None:
        before = best.value
        if best.improves(record) and not _try_save(trainer, self.folder / "best"):
            best.value = before  # the next improvement is saved

    def _save(self, trainer: Trainer) -> None:
        if not self.keep:
            _try_save(trainer, self.folder / "last")
            return
        name, before = f"step-{trainer.step:08d}", self._kept
        self._kept = [*(each for each in before if each != name), name]  # part of what is saved
        saved = [_try_save(trainer, self.folder / each) for each in ("last", name)]
        if not all(saved):
            self._kept = before
            return
        for old in self._kept[: -self.keep] if trainer.is_main else ():
            self._remove(self.folder / old)
        self._kept = self._kept[-self.keep :]

    def _remove(self, path: Path) -> None:
        """Remove a checkpoint if this run wrote it."""
        try:
            if self._is_own(path):
                remove_folder(path, KIND)
        except OSError as error:
            warnings.warn(f"Checkpoint: {path} could not be removed: {error}", stacklevel=2)

    def _is_own(self, path: Path) -> bool:
        """Return whether this run wrote a checkpoint, or a crash left a part of it."""
        try:
            with open_checkpoint(path) as folder:
                if not folder.file("config.json").exists():  # removed before training.json
                    return True
                saved = read_json(folder, "training.json")["callbacks"]
                return any(state.get("run") == self._run for _, state in saved)
        except (CheckpointError, KeyError, TypeError, ValueError, AttributeError):
            return False  # it was replaced or damaged

    def state_dict(self) -> dict[str, Any]:
        """Return the best value, the names of the `step-...` folders and the name of this run."""
        best = None if self.best is None else self.best.value
        state = {"best": best, "kept": self._kept}
        return {**state, "run": self._run} if self.keep else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        best, kept = state["best"], state.get("kept", [])
        if not all(_STEP.fullmatch(name) for name in kept):
            raise ArgumentError(f"Checkpoint: {kept!r:.80} are not names of step folders")
        if self.best is not None:
            self.best.value = best
        self._kept, self._run = list(kept), state.get("run", self._run)


_STEP = re.compile(r"step-\d+")


def _try_save(trainer: Trainer, path: Path) -> bool:
    """Save, or warn if the disk is full or a foreign file is in the way; return the success."""
    try:
        trainer.save(path)
    except (OSError, CheckpointError) as error:
        warnings.warn(
            f"Checkpoint: {path} could not be saved at step {trainer.step}: {error}; training "
            "continues, the previous checkpoint stays",
            stacklevel=2,
        )
        return False
    return True
