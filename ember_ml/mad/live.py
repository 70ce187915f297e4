"""A sweep under way, in the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.pool import Event
from ember_ml.mad.run import Point, Result
from ember_ml.mad.scores import cells, task_of
from ember_ml.mad.store import Done, Failed, run_name
from ember_ml.mad.sweep import Pool, Sweep

SHORT = {
    "in-context-recall": "recall",
    "noisy-in-context-recall": "noisy",
    "fuzzy-in-context-recall": "fuzzy",
    "memorization": "memorize",
    "compression": "compress",
    "selective-copying": "copy",
}
"""Names of tasks that fit above a column."""


class Progress:
    """How far a sweep is: which runs are done, under way, failed, and how long the rest takes."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        known = {run_name(run) for run in sweep.runs}
        done = sweep.store.done() if (sweep.store.path / "sweep.json").exists() else []
        self.done = {run_name(each.run): each for each in done if run_name(each.run) in known}
        self.failed: dict[str, Failed] = {}
        self.going: dict[str, tuple[RunConfig, Point | None]] = {}
        self._before = self._steps_done()
        self._started = time.monotonic()

    def see(self, event: Event) -> None:
        """Take in what happened."""
        name = run_name(event.run)
        if isinstance(event.what, Result):
            self.done[name] = Done(event.run, event.what)
        elif isinstance(event.what, str):
            self.failed[name] = Failed(event.run, event.what)
        if isinstance(event.what, Point) or event.what is None:
            self.going[name] = event.run, event.what
        else:
            self.going.pop(name, None)

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
        total = sum(run.steps for run in self.sweep.runs)
        began = self._before / total if total else 1.0
        made = self.share() - began
        if made <= 0:
            return None
        return (time.monotonic() - self._started) / made * (1.0 - self.share())

    def table(self) -> Any:
        """Accuracies by architecture and task; of runs under way, the one on the validation."""
        from rich.table import Table
        from rich.text import Text

        table = Table(title=self._title(), title_justify="left", expand=False)
        table.add_column("architecture", overflow="fold", min_width=18)
        for task in self.sweep.tasks:
            table.add_column(SHORT.get(task, task), justify="right")
        table.add_column("mean", justify="right", style="bold")
        scores = {(c.architecture, c.task): c.accuracy.mean for c in cells(self.done.values())}
        for each in self.sweep.architectures:
            row = [self._cell(each.name, task, scores) for task in self.sweep.tasks]
            known = [scores.get((each.name, task)) for task in self.sweep.tasks]
            whole = [value for value in known if value is not None]
            mean = f"{100 * sum(whole) / len(whole):.1f}" if len(whole) == len(known) else ""
            table.add_row(Text(each.name), *row, mean)
        return table

    def _title(self) -> str:
        sweep = self.sweep
        left = self.seconds_left()
        text = f"MAD {sweep.scale.name} on {sweep.backend}: {len(self.done)} of {len(sweep.runs)}"
        text += f" runs, {100 * self.share():.0f} %"
        text += f", {len(self.failed)} failed" if self.failed else ""
        return text + (f", about {clock(left)} left" if left is not None and self.going else "")

    def _cell(self, name: str, task: str, scores: dict[tuple[str, str], float]) -> str:
        going = [
            (run, point)
            for run, point in self.going.values()
            if run.architecture == name and task_of(run) == task
        ]
        failed = any(
            each.run.architecture == name and task_of(each.run) == task
            for each in self.failed.values()
        )
        if (name, task) in scores and not going:
            return f"{100 * scores[name, task]:.1f}" + ("[red]![/]" if failed else "")
        if going:
            run, point = going[0]
            if point is None:
                return "[dim]...[/]"
            return f"[dim]{100 * point.accuracy:.0f} @{100 * point.step // run.steps}%[/]"
        return "[red]failed[/]" if failed else ""


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
            left = progress.seconds_left()
            rest = f", about {clock(left)} left" if left is not None else ""
            console.print(
                f"{event.run.architecture} on {task_of(event.run)}: {text} "
                f"({len(progress.done)} of {len(progress.sweep.runs)}{rest})",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    console.print(progress.table())
    return progress
