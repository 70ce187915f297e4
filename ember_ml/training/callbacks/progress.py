"""Progress bar."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ember_ml.training.callbacks.base import Callback

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer


class Progress(Callback):
    """Progress bar in a terminal; a line for each epoch and for each evaluation within one.

    Args:
        interval: Seconds from one update to the next.
    """

    main_only = True

    def __init__(self, interval: float = 0.2) -> None:
        self.interval = interval
        self._bar: Any = None
        self._task: Any = None
        self._next = 0.0

    def on_fit_start(self, trainer: Trainer) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._console = Console()
        if not self._console.is_terminal:
            return
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=self._console,
        )
        total = trainer.total_steps
        self._task = self._bar.add_task("training", total=total, completed=trainer.step, loss="")
        self._bar.start()

    def on_step_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Update the bar, at most once in `interval` seconds; print a line for an evaluation."""
        if any(name.startswith("val_") for name in record):
            self._print(trainer, int(record["epoch"]) + 1, record)
        now = time.monotonic()
        if self._bar is not None and now >= self._next:
            self._next = now + self.interval
            text = f"epoch {trainer.epoch + 1}  loss {float(record['loss']):.4f}"
            if trainer.train_metrics is not None:
                names = [name for name in trainer.train_metrics.names() if name in record]
                text = "  ".join([text, *(f"{name} {record[name]:.4g}" for name in names)])
            self._bar.update(self._task, completed=trainer.step, loss=text)

    def on_epoch_end(self, trainer: Trainer, record: dict[str, float]) -> None:
        """Print a line for the epoch."""
        self._print(trainer, int(record["epoch"]), record)
        if self._bar is not None:
            self._bar.update(self._task, completed=trainer.step)

    def _print(self, trainer: Trainer, epoch: int, record: dict[str, float]) -> None:
        skipped = ("epoch", "step", "seconds", "learning_rate", "grad_norm")
        values = "  ".join(
            f"{name} {value:.4g}" for name, value in record.items() if name not in skipped
        )
        text = f"epoch {epoch}  step {trainer.step}  {values}"
        self._console.print(text, highlight=False, soft_wrap=True)

    def on_fit_end(self, trainer: Trainer) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
