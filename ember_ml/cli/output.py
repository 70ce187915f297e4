"""Output of the commands."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2
"""Space between the columns of a table."""


def console(*, to_errors: bool = False) -> Console:
    """Return a console that wraps lines only in a terminal.

    Args:
        to_errors: Whether to write to standard error, so that standard output is for scripts.
    """
    from rich.console import Console

    terminal = Console(stderr=to_errors, highlight=False)
    if terminal.is_terminal:
        return terminal
    return Console(stderr=to_errors, highlight=False, width=10_000)


def say(text: str = "") -> None:
    """Write a line to standard output."""
    typer.echo(text)


def remark(text: str) -> None:
    """Write a line to standard error."""
    typer.echo(text, err=True)


def write_json(data: object) -> None:
    """Write data as JSON to standard output."""
    typer.echo(json.dumps(data, indent=2))


def table(rows: Iterable[Iterable[str]], *headers: str, folded: Collection[int] = ()) -> Table:
    """Return a table without lines, whose first column is highlighted.

    Args:
        rows: Cells of each row.
        headers: Headings of the columns, or none.
        folded: Columns that wrap if the terminal is too narrow. Default: all but the first.
    """
    from rich.table import Table
    from rich.text import Text

    result = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=bool(headers))
    cells = [[str(cell) for cell in row] for row in rows]
    for at in range(len(headers) or max((len(row) for row in cells), default=0)):
        result.add_column(
            headers[at] if headers else "",
            style="bold cyan" if at == 0 else None,
            no_wrap=at not in folded if folded else at == 0,
            overflow="fold" if at in folded else "ellipsis",
        )
    for row in cells:
        result.add_row(*(Text(cell) for cell in row))  # Text: brackets are not markup
    return result
