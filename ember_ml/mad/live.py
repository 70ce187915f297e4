"""A sweep under way, in the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.board import Board, Entry, Row
from ember_ml.mad.pool import Event
from ember_ml.mad.run import Point, Result
from ember_ml.mad.scales import short_name
from ember_ml.mad.scores import Cell, Score, cells, overall, task_of
from ember_ml.mad.store import Done, Failed, run_name
from ember_ml.mad.sweep import Pool, Sweep


class Pace:
    """How fast a sweep goes.

    The clock starts at the first progress, for the start of the workers says nothing of the rest.
    Nothing is told before there was as much progress again as runs were under way then: of runs
    side by side, the first few steps come all at once.

    Args:
        share: how much of the sweep was done before.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._first: tuple[float, float] | None = None
        self._awaited = 0

    def see(self, share: float, under_way: int) -> None:
        """Take in how much is done now, and how many runs are at it."""
        if share <= self._share:
            return
        self._share = share
        self._awaited -= 1
        if self._first is None:
            self._first = time.monotonic(), share
            self._awaited = under_way

    def seconds_left(self) -> float | None:
        """How long the rest takes; None if nothing is known yet."""
        if self._first is None or self._awaited > 0:
            return None
        began, before = self._first
        return (time.monotonic() - began) / (self._share - before) * (1.0 - self._share)


class Progress:
    """How far a sweep is: which runs are done, under way, failed, and how long the rest takes."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        known = {run_name(run) for run in sweep.runs}
        known -= {run_name(run) for run in sweep.remaining()}
        done = sweep.store.done() if known else []
        self.done = {run_name(each.run): each for each in done if run_name(each.run) in known}
        self.failed: dict[str, Failed] = {}
        self.going: dict[str, tuple[RunConfig, Point | None]] = {}
        self._pace = Pace(self.share())

    def see(self, event: Event) -> None:
        """Take in what happened."""
        name = run_name(event.run)
        under_way = len({*self.going, name})
        if isinstance(event.what, Result):
            self.done[name] = Done(event.run, event.what)
        elif isinstance(event.what, str):
            self.failed[name] = Failed(event.run, event.what)
        if isinstance(event.what, Point) or event.what is None:
            self.going[name] = event.run, event.what
        else:
            self.going.pop(name, None)
        self._pace.see(self.share(), under_way)

    def _steps_done(self) -> float:
        """Steps that need not be done any more; a run that ended early counts as whole."""
        return float(sum(each.run.steps for each in self.done.values()))

    def share(self) -> float:
        """How much of all steps is behind us."""
        total = sum(run.steps for run in self.sweep.runs)
        gone = self._steps_done()
        gone += sum(each.run.steps for each in self.failed.values())
        gone += sum(point.step for _, point in self.going.values() if point is not None)
        return gone / total if total else 1.0

    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace so far; None if nothing is known yet."""
        return self._pace.seconds_left()

    def table(self) -> Board:
        """Accuracies by architecture and task; of runs under way, the one on the validation."""
        found = {(cell.architecture, cell.task): cell for cell in cells(self.done.values())}
        return Board(
            self._title(),
            [short_name(task) for task in self.sweep.tasks],
            [self._row(each.name, found) for each in self.sweep.architectures],
        )

    def _row(self, name: str, found: dict[tuple[str, str], Cell]) -> Row:
        known = [found.get((name, task)) for task in self.sweep.tasks]
        whole = [cell for cell in known if cell is not None]
        return Row(
            name,
            [self._entry(name, *pair) for pair in zip(self.sweep.tasks, known, strict=True)],
            _entry(overall(whole)) if len(whole) == len(known) else Entry(),
        )

    def _title(self) -> str:
        sweep = self.sweep
        text = f"MAD {sweep.scale.name} on {sweep.backend}: {len(self.done)} of {len(sweep.runs)}"
        text += f" runs, {100 * self.share():.0f} %"
        text += f", {len(self.failed)} failed" if self.failed else ""
        return text + (self._rest() if self.going else "")

    def _rest(self) -> str:
        left = self.seconds_left()
        return f", about {clock(left)} left" if left else ""

    def _entry(self, name: str, task: str, cell: Cell | None) -> Entry:
        def here(run: RunConfig) -> bool:
            return run.architecture == name and task_of(run) == task

        for run, point in self.going.values():
            if here(run):
                return _going(run, point)
        failed = any(here(each.run) for each in self.failed.values())
        if cell is None:
            return Entry("failed", style="red") if failed else Entry()
        return _entry(cell.accuracy)._replace(failed=failed)


def _entry(found: Score) -> Entry:
    interval = "" if found.interval is None else f"{100 * found.interval:.1f}"
    return Entry(f"{100 * found.mean:.1f}", interval)


def _going(run: RunConfig, point: Point | None) -> Entry:
    if point is None:
        return Entry("...", style="dim")
    return Entry(f"{100 * point.accuracy:.0f} @{100 * point.step // run.steps}%", style="dim")


def clock(seconds: float) -> str:
    """Seconds as people say them.

    Example:
        >>> from ember_ml.mad.live import clock
        >>> clock(42), clock(400), clock(8000)
        ('42 s', '7 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def watch(sweep: Sweep, pool: Pool | None = None, console: Any = None) -> Progress:
    """Do what remains of a sweep, and show how it goes: a live table, or lines if no terminal.

    Args:
        sweep: what to do.
        pool: what does the runs.
        console: a rich.console.Console; that of the terminal if not given.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console() if console is None else console
    progress = Progress(sweep)
    if not console.is_terminal:
        return _in_lines(progress, sweep.events(pool), console)
    with Live(progress.table(), console=console, refresh_per_second=4) as live:
        for event in sweep.events(pool):
            progress.see(event)
            live.update(progress.table())
        live.update(progress.table())
    return progress


def _in_lines(progress: Progress, events: Iterable[Event], console: Any) -> Progress:
    console.print(progress._title())
    for event in events:
        progress.see(event)
        if isinstance(event.what, (Result, str)):
            what = event.what
            text = f"{100 * what.accuracy:.1f} %" if isinstance(what, Result) else "failed"
            console.print(
                f"{event.run.architecture} on {task_of(event.run)}: {text} "
                f"({len(progress.done)} of {len(progress.sweep.runs)}{progress._rest()})",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    console.print(progress.table())
    return progress
