"""Evaluation during and after a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import TensorLike
from ember_ml.configs.mad import RunConfig
from ember_ml.data import Dataset
from ember_ml.mad.tasks.draws import IGNORED
from ember_ml.training import Trainer
from ember_ml.training.callbacks import Callback
from ember_ml.training.metrics import Metric

EVALUATION_BATCH = 256
SAVE_SECONDS = 5.0
"""Minimum time between two checkpoints of a run."""


class Point(NamedTuple):
    """An evaluation during training."""

    step: int
    loss: float
    """Mean training loss since the previous evaluation."""
    accuracy: float
    """Accuracy on the validation split, over all targets."""
    validation_loss: float


class ExampleCounts(Metric[int]):
    """Counts the targets of each example, and the correctly predicted ones."""

    ignore_index = IGNORED
    skips_ignored = True

    def __init__(self) -> None:
        super().__init__("num_correct")

    def reset(self) -> None:
        """Discard all examples."""
        self.correct: list[int] = []
        self.targets: list[int] = []

    def update(
        self, prediction: TensorLike, target: TensorLike, mask: TensorLike | None = None
    ) -> None:
        """Add a batch of scores (batch, length, classes) and targets (batch, length)."""
        classes = convert_to_tensor(target)
        valid = classes != IGNORED
        right = ops.logical_and(ops.argmax(prediction, axis=-1) == classes, valid)
        self.correct += ops.sum(right, axis=-1).tolist()
        self.targets += ops.sum(valid, axis=-1).tolist()

    def compute(self) -> int:
        """Return the number of correct targets of all examples."""
        return sum(self.correct)


class Evaluator(Callback):
    """Evaluates on the validation split at intervals, and stops once the task is learned.

    Args:
        run: Config of the run.
        data: Validation split.
        observe: Called with each evaluation.
        checkpoint: Folder to save the run in after evaluations. Default: it is not saved.
    """

    def __init__(
        self,
        run: RunConfig,
        data: Dataset,
        observe: Callable[[Point], object] | None = None,
        checkpoint: Path | None = None,
    ) -> None:
        self.run = run
        self.data = data
        self.observe = observe
        self.checkpoint = checkpoint
        self.curve: list[Point] = []
        self.training_seconds = 0.0
        self._losses: list[float] = []
        self._resumed = self._saved = time.monotonic()

    def on_fit_start(self, trainer: Trainer) -> None:
        """Start the clock."""
        self._resumed = self._saved = time.monotonic()

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Evaluate after every `evaluate_every` steps, and save the run."""
        self._losses.append(record["loss"])
        if trainer.step % self.run.evaluate_every == 0 or trainer.step == self.run.steps:
            self.evaluate(trainer)
            if self.curve[-1].accuracy >= self.run.stop_at:
                trainer.should_stop = True
            elif self.checkpoint is not None and time.monotonic() - self._saved >= SAVE_SECONDS:
                self._save(trainer, self.checkpoint)

    def _save(self, trainer: Trainer, checkpoint: Path) -> None:
        with contextlib.suppress(OSError):  # without a checkpoint, the run can still finish
            trainer.save(checkpoint)
        self._resumed = self._saved = time.monotonic()

    def evaluate(self, trainer: Trainer) -> None:
        """Append an evaluation to the curve."""
        self.training_seconds += time.monotonic() - self._resumed
        metrics = trainer.evaluate(self.data, batch_size=EVALUATION_BATCH)
        mean_loss = sum(self._losses) / max(1, len(self._losses))
        point = Point(trainer.step, mean_loss, float(metrics["accuracy"]), float(metrics["loss"]))
        self.curve.append(point)
        self._losses.clear()
        if self.observe is not None:
            self.observe(point)
        self._resumed = time.monotonic()

    def state_dict(self) -> dict[str, Any]:
        """Return the run, its curve and its training time."""
        return {
            "run": self.run.to_dict(),
            "curve": [list(point) for point in self.curve],
            "training_seconds": self.training_seconds,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the curve and the training time; the run must be the same."""
        if state["run"] != self.run.to_dict():
            raise ArgumentError("Evaluator: the checkpoint belongs to another run")
        self.curve = [Point(*point) for point in state["curve"]]
        self.training_seconds = state["training_seconds"]
