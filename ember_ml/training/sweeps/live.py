"""Live progress of a sweep in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Progress(Protocol):
    """Progress of a sweep, updated by its events."""

    def update(self, event: Any) -> None:
        """Record an event."""

    def title(self) -> str:
        """Return a line with the progress."""

    def table(self) -> RenderableType:
        """Return the table that a terminal shows."""

    def line(self, event: Any) -> str | None:
        """Return a line about an event that was recorded; None if it is not worth one."""


def show(progress: Progress, events: Iterable[Any], console: Console) -> None:
    """Read all events and show the progress.

    A terminal shows a live table; other outputs get a line for each finished job.

    Args:
        progress: Progress to update.
        events: Events of the sweep.
        console: Console to write to.
    """
    if console.is_terminal:
        _show_table(progress, events, console)
    else:
        _print_lines(progress, events, console)


def _show_table(progress: Progress, events: Iterable[Any], console: Console) -> None:
    from rich.live import Live

    with Live(progress.table(), console=console, refresh_per_second=4) as live:
        for event in events:
            progress.update(event)
            live.update(progress.table())
        live.update(progress.table())


def _print_lines(progress: Progress, events: Iterable[Any], console: Console) -> None:
    console.print(progress.title())
    for event in events:
        progress.update(event)
        line = progress.line(event)
        if line is not None:
            print_line(console, line)
    console.print(progress.table())


def print_line(console: Console, line: str) -> None:
    """Print a line of text; warnings are yellow, and only a terminal wraps it.

    Args:
        console: Console to write to.
        line: The text.
    """
    style = "yellow" if line.startswith("warning") else None
    whole = not console.is_terminal
    console.print(line, style=style, highlight=False, markup=False, soft_wrap=whole)


def clock(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours.

    Args:
        seconds: The duration.

    Example:
        >>> from ember_ml.training.sweeps.live import clock
        >>> clock(42), clock(400), clock(8000)
        ('42 s', '7 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
