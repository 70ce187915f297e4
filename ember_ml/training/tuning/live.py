"""Live progress of a search in the terminal."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

from ember_ml.training.sweeps.jobs import Event
from ember_ml.training.sweeps.live import clock
from ember_ml.training.tuning.module import SelfTuningModule
from ember_ml.training.tuning.trial import Trial

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_ROWS = 12
"""Maximum number of completed trials in the table."""


class TuningProgress:
    """Progress of a search: the best trials, the active ones, and the remaining time.

    Args:
        tuner: Tuner of the search.
        budget: Number of trials of the search.
    """

    def __init__(self, tuner: SelfTuningModule, budget: int) -> None:
        self.tuner = tuner
        self.budget = budget
        self._started: dict[int, float] = {}
        self._seconds: list[float] = []

    def update(self, event: Event) -> None:
        """Record when a trial starts and ends."""
        trial = event.job.key
        if event.kind == "started":
            self._started[trial.id] = time.monotonic()
        elif event.kind != "report" and trial.id in self._started:
            self._seconds.append(time.monotonic() - self._started.pop(trial.id))

    def over(self, *states: str) -> list[Trial]:
        """Return the trials in given states; all that have ended by default.

        Args:
            *states: "done", "pruned" or "failed".
        """
        return [
            each for each in self.tuner.trials if (each.state in states if states else each.is_over)
        ]

    def seconds_left(self) -> float | None:
        """Return the estimated remaining time; None if no trial has ended yet."""
        if not self._seconds or not self._started:
            return None
        mean, now = statistics.fmean(self._seconds), time.monotonic()
        active = [max(0.0, mean - (now - at)) for at in self._started.values()]
        waiting = max(0, self.budget - len(self.tuner.trials)) * mean
        return (sum(active) + waiting) / len(self._started)

    def title(self) -> str:
        """Return a line with the progress of the search."""
        counts = {state: len(self.over(state)) for state in ("pruned", "failed")}
        text = f"tune {self.tuner.task}: {len(self.over())} of {self.budget} trials"
        text += "".join(f", {count} {state}" for state, count in counts.items() if count)
        best = self.tuner.best
        if best is not None:
            text += f", best {self.tuner.metric} {best.scores[self.tuner.metric]:.4g}"
        left = self.seconds_left()
        return text + (f", about {clock(left)} left" if left else "")

    def line(self, event: Event) -> str | None:
        """Return a line about a trial that has ended; None for other events."""
        if event.kind not in ("done", "failed"):
            return None
        trial = self.tuner.history.trials[event.job.key.id]
        outcome = trial.reason if trial.state == "failed" else show_values(trial)
        return f"trial {trial.id} {trial.state}: {outcome} ({show_params(trial)})"

    def table(self) -> RenderableType:
        """Return the best trials, and the active ones."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        keys = list(self.tuner.space)
        table = Table(title=Text(self.title()), title_justify="left", box=box.SIMPLE_HEAD)
        for name in ("trial", "state", self.tuner.metric, "step"):
            table.add_column(Text(name), justify="left" if name == "state" else "right")
        for key in keys:
            table.add_column(Text(key.rpartition(".")[2]), overflow="fold")
        for trial in self._shown():
            values = [show_number(trial.params.get(key, "")) for key in keys]
            table.add_row(*map(Text, (*self._cells(trial), *values)), style=_style(trial))
        return table

    def _shown(self) -> list[Trial]:
        sign = 1.0 if self.tuner.objectives[self.tuner.metric] == "max" else -1.0
        ranked = sorted(self.over("done"), key=lambda each: -sign * each.scores[self.tuner.metric])
        return [*ranked[:MAX_ROWS], *(each for each in self.tuner.trials if not each.is_over)]

    def _cells(self, trial: Trial) -> tuple[str, str, str, str]:
        reported = trial.reports[-1] if trial.reports else None
        value = trial.scores.get(self.tuner.metric, reported[1] if reported else None)
        step = "" if reported is None else str(reported[0])
        return str(trial.id), trial.state, "" if value is None else f"{value:.4g}", step


def _style(trial: Trial) -> str:
    return "" if trial.is_over else "dim"


def show_number(value: Any) -> str:
    """Return a value of a hyperparameter as short text.

    Args:
        value: The value.
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_params(trial: Trial) -> str:
    """Return the values of a trial's hyperparameters.

    Args:
        trial: The trial.
    """
    return ", ".join(f"{key}={show_number(value)}" for key, value in trial.params.items())


def show_values(trial: Trial) -> str:
    """Return the values of a trial's objectives.

    Args:
        trial: The trial.
    """
    return ", ".join(f"{name} {value:.4g}" for name, value in trial.scores.items())
