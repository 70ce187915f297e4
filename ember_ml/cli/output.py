"""What commands write."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

import typer

GAP = 2
"""Between the columns of a table."""


def console(*, to_errors: bool = False) -> Any:
    """A console that breaks lines in a terminal only.

    Args:
        to_errors: whether to write to the standard error, where the output is for scripts.
    """
    from rich.console import Console

    made = Console(stderr=to_errors, highlight=False)
    return made if made.is_terminal else Console(stderr=to_errors, highlight=False, width=10_000)


def say(text: str = "") -> None:
    """Write a line."""
    typer.echo(text)


def remark(text: str) -> None:
    """Write a line that is no part of the output."""
    typer.echo(text, err=True)


def write_json(data: Any) -> None:
    """Write data for scripts."""
    typer.echo(json.dumps(data, indent=2))


def table(
    rows: Iterable[Iterable[str]],
    *headers: str,
    title: str | None = None,
    folded: Collection[int] = (),
) -> Any:
    """Columns without lines between; the first one stands out.

    Args:
        rows: the cells.
        headers: one of each column, or none at all.
        title: stands above.
        folded: the columns whose words are broken where there is too little room, while the
            others stay whole; if none is named, only the first one stays whole.
    """
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), title=title)
    made.show_header = bool(headers)
    made.title_justify, made.title_style = "left", "bold"
    cells = [[str(cell) for cell in row] for row in rows]
    for at in range(len(headers) or max((len(row) for row in cells), default=0)):
        header = headers[at] if headers else ""
        made.add_column(
            header,
            style="bold cyan" if at == 0 else None,
            no_wrap=at not in folded if folded else at == 0,
            overflow="fold" if at in folded else "ellipsis",
        )
    for row in cells:
        made.add_row(*(Text(cell) for cell in row))  # brackets in it are no markup
    return made
