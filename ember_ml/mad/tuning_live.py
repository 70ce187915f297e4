"""Live progress of the tuning of a sweep in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ember_ml.mad.scales import short_name
from ember_ml.mad.score_table import ScoreTable, TableCell, TableRow
from ember_ml.mad.tuning import SweepTuning, Tuned
from ember_ml.training.sweeps import Event

if TYPE_CHECKING:
    from rich.console import RenderableType


class TuningProgress:
    """Progress of the tuning: the best learning rate of each architecture on each task so far.

    Args:
        tuning: Tuning of the sweep.
    """

    def __init__(self, tuning: SweepTuning) -> None:
        self.tuning = tuning

    def update(self, event: Event) -> None:
        """Do nothing: the histories have recorded the event."""

    def title(self) -> str:
        """Return a line with the number of trials that are over."""
        pairs = self.tuning.outcomes()
        over, failed = sum(each.trials for each in pairs), sum(each.failed for each in pairs)
        text = f"tuning: {over} of {len(pairs) * self.tuning.budget} trials"
        text += f", {failed} failed" if failed else ""
        return f"{text}, {self.tuning.budget} of each architecture on each task"

    def line(self, event: Event) -> str | None:
        """Return a line about a trial that has ended; None for other events."""
        if event.kind not in ("done", "failed"):
            return None
        trial, run = event.job.key, event.job.data["run"]
        outcome = "failed"
        if event.kind == "done":
            outcome = f"{100 * event.value['values']['validation_accuracy']:.1f} %"
        rates = f"lr {trial['learning_rate']:.2g}, wd {trial['weight_decay']:.2g}"
        return f"trial of {run['architecture']} on {trial.task}, {rates}: {outcome}"

    def table(self) -> RenderableType:
        """Return the best learning rates."""
        found = {(each.architecture, each.task): each for each in self.tuning.outcomes()}
        rows = [
            TableRow(name, [_cell(found[name, task]) for task in self.tuning.tasks], TableCell())
            for name in self.tuning.architectures
        ]
        return ScoreTable(self.title(), [short_name(task) for task in self.tuning.tasks], rows)


def _cell(tuned: Tuned) -> TableCell:
    rates = tuned.rates()
    if rates is None:
        return TableCell("failed" if tuned.failed else "")
    return TableCell(f"{rates.learning_rate:.1e}", failed=bool(tuned.failed))
