"""Live progress of a sweep in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.compare import Standing, standings
from ember_ml.mad.pace import Pace
from ember_ml.mad.pool import Event
from ember_ml.mad.run import Point, Result
from ember_ml.mad.scales import short_name
from ember_ml.mad.score_table import ScoreTable, TableCell, TableRow
from ember_ml.mad.scores import Cell, Score, cells, overall, task_of
from ember_ml.mad.store import Done, Failed, run_name
from ember_ml.mad.sweep import Pool, Sweep
from ember_ml.training.sweeps.live import clock, print_line, show

if TYPE_CHECKING:
    from rich.console import Console


class Progress:
    """Progress of a sweep: runs that are done, active or failed, and the remaining time.

    Args:
        sweep: Sweep to follow.
    """

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        names = {run_name(run) for run in sweep.runs}
        names -= {run_name(run) for run in sweep.remaining()}
        done = sweep.store.done() if names else []
        self.done = {run_name(each.run): each for each in done if run_name(each.run) in names}
        self.failed: dict[str, Failed] = {}
        self.active: dict[str, tuple[RunConfig, Point | None]] = {}
        waiting = [run for run in sweep.runs if run_name(run) not in self.done]
        self._pace = Pace(waiting, self.done.values())

    def update(self, event: Event) -> None:
        """Record an event."""
        self._pace.update(event)
        if isinstance(event.payload, float):
            return
        name = run_name(event.run)
        if isinstance(event.payload, Result):
            self.done[name] = Done(event.run, event.payload)
        elif isinstance(event.payload, str):
            self.failed[name] = Failed(event.run, event.payload)
        if isinstance(event.payload, Point) or event.payload is None:
            self.active[name] = event.run, event.payload
        else:
            self.active.pop(name, None)

    def fraction(self) -> float:
        """Return the fraction of all training steps that is done or skipped."""
        total = sum(run.steps for run in self.sweep.runs)
        finished = sum(each.run.steps for each in self.done.values())
        finished += sum(each.run.steps for each in self.failed.values())
        finished += sum(point.step for _, point in self.active.values() if point is not None)
        return finished / total if total else 1.0

    def seconds_left(self) -> float | None:
        """Return the estimated remaining time; None if there is no estimate yet."""
        return self._pace.seconds_left()

    def table(self) -> ScoreTable:
        """Return test accuracies; for active runs, the latest validation accuracy."""
        scores = {(cell.architecture, cell.task): cell for cell in cells(self.done.values())}
        return ScoreTable(
            self.title(),
            [short_name(task) for task in self.sweep.tasks],
            [self._row(each.name, scores) for each in self.sweep.architectures],
        )

    def _row(self, name: str, scores: dict[tuple[str, str], Cell]) -> TableRow:
        row = [scores.get((name, task)) for task in self.sweep.tasks]
        known = [cell for cell in row if cell is not None]
        return TableRow(
            name,
            [self._cell(name, *pair) for pair in zip(self.sweep.tasks, row, strict=True)],
            _score_cell(overall(known)) if len(known) == len(row) else TableCell(),
        )

    def title(self) -> str:
        """Return a line with the progress of the sweep."""
        sweep = self.sweep
        text = f"MAD {sweep.scale.name} on {sweep.backend}: {len(self.done)} of {len(sweep.runs)}"
        text += f" runs, {100 * self.fraction():.0f} %"
        text += f", {len(self.failed)} failed" if self.failed else ""
        return text + (self.time_left() if self.active else "")

    def time_left(self) -> str:
        """Return the remaining time as text that follows a comma; empty if unknown."""
        left = self.seconds_left()
        return f", about {clock(left)} left" if left else ""

    def line(self, event: Event) -> str | None:
        """Return a line about a run that has ended; None for other events."""
        outcome = event.payload
        if not isinstance(outcome, (Result, str)):
            return None
        text = f"{100 * outcome.accuracy:.1f} %" if isinstance(outcome, Result) else "failed"
        return (
            f"{event.run.architecture} on {task_of(event.run)}: {text} "
            f"({len(self.done)} of {len(self.sweep.runs)}{self.time_left()})"
        )

    def notes(self) -> list[str]:
        """Return sentences about ties, the number of seeds and unequal sizes."""
        scores = cells(self.done.values())
        sentences = []
        if len(self.sweep.architectures) > 1 and scores:
            sentences += _ties(standings(scores))
            if len(self.sweep.seeds) == 1:
                sentences.append(
                    "one seed: the intervals cover the test examples alone, and another seed may "
                    "change the order; add --seeds 3"
                )
        return [*sentences, *(f"warning: {each}" for each in self.sweep.size_warnings)]

    def _cell(self, name: str, task: str, cell: Cell | None) -> TableCell:
        def belongs(run: RunConfig) -> bool:
            return run.architecture == name and task_of(run) == task

        for run, point in self.active.values():
            if belongs(run):
                return _active_cell(run, point)
        failed = any(belongs(each.run) for each in self.failed.values())
        if cell is None:
            return TableCell("failed", style="red") if failed else TableCell()
        return _score_cell(cell.accuracy)._replace(failed=failed)


def _ties(places: Sequence[Standing]) -> list[str]:
    """Return a sentence for each pair of architectures that cannot be told apart."""
    order = [each.architecture for each in places]
    pairs = [
        (each.architecture, other)
        for each in places
        for other in each.tied_with
        if order.index(each.architecture) < order.index(other)
    ]
    return [f"tied: {one} and {other} cannot be told apart" for one, other in pairs]


def _score_cell(score: Score) -> TableCell:
    low, high = score.interval
    bounds = f"{math.floor(100 * low)}-{math.ceil(100 * high)}" if low == low else ""
    return TableCell(f"{100 * score.mean:.1f}", bounds)


def _active_cell(run: RunConfig, point: Point | None) -> TableCell:
    if point is None:
        return TableCell("...", style="dim")
    return TableCell(f"{100 * point.accuracy:.0f} @{100 * point.step // run.steps}%", style="dim")


def watch(sweep: Sweep, pool: Pool | None = None, console: Console | None = None) -> Progress:
    """Do the remaining runs of a sweep and show their progress.

    A terminal shows a live table; other outputs get one line per finished run.

    Args:
        sweep: Sweep to run.
        pool: Does the runs. Default: processes of this machine.
        console: Console to write to. Default: the terminal.

    Returns:
        The progress at the end.
    """
    from rich.console import Console

    console = Console() if console is None else console
    progress = Progress(sweep)
    for sentence in sweep.size_warnings:
        print_line(console, f"warning: {sentence}")
    show(progress, sweep.events(pool), console)
    for note in progress.notes():
        print_line(console, note)
    return progress
