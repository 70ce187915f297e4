"""A table of scores that fits any terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

NAME = 12
"""The least width of the names' column; longer names are broken."""
HEADING = 9
"""The most width that a heading asks for; longer ones are broken."""
GOING = len("45 @60%")
"""The width that is kept for runs under way."""


class Entry(NamedTuple):
    """What stands in a cell."""

    text: str = ""
    interval: str = ""
    style: str = ""
    failed: bool = False
    """Whether some of its runs failed."""

    def shown(self, sign: str) -> Any:
        """It as a rich.text.Text, with the interval after the sign; without, if there is none."""
        from rich.text import Text

        interval = f"{sign}{self.interval}" if sign and self.interval else ""
        text = Text(self.text + interval, self.style, overflow="fold")
        return text.append("!", "red") if self.failed else text


class Row(NamedTuple):
    """An architecture, its tasks, and their mean."""

    name: str
    entries: list[Entry]
    mean: Entry


class Board:
    """A table as wide as the terminal allows, of which no number is ever cut.

    If it is too narrow for the intervals, they are left out; if it is too narrow for a column of
    each task, the tasks of an architecture stand below its name.

    Args:
        title: stands above.
        tasks: the headings.
        rows: one of each architecture.
    """

    def __init__(self, title: str, tasks: Sequence[str], rows: Sequence[Row]) -> None:
        self.title = title
        self.tasks = tasks
        self.rows = rows

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """Its parts, as rich asks for them."""
        from rich.text import Text

        yield Text(self.title, "table.title", overflow="fold")
        sign = "+-" if options.ascii_only else "\N{PLUS-MINUS SIGN}"
        for each in (sign, ""):
            table = self._table(each, options.max_width)
            if table is not None:
                yield table
                return
        yield from self._lists(sign, options.max_width)

    def _table(self, sign: str, width: int) -> Any:
        """All in columns; None if they do not fit."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        cells = [[each.shown(sign) for each in (*row.entries, row.mean)] for row in self.rows]
        widths = self._widths(cells)
        room = width - sum(widths) - len(widths)  # one between two columns
        if room < NAME:
            return None
        made = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        longest = max(Text(row.name).cell_len for row in self.rows)
        made.add_column("architecture", overflow="fold", width=min(room, max(NAME, longest)))
        for task, least in zip((*self.tasks, "mean"), widths, strict=True):
            made.add_column(Text(task), justify="right", overflow="fold", width=least)
        made.columns[-1].style = "bold"
        for row, line in zip(self.rows, cells, strict=True):
            made.add_row(Text(row.name), *line)
        return made

    def _widths(self, cells: Sequence[Sequence[Any]]) -> list[int]:
        """Of the columns after the names."""
        least = [max(GOING, min(HEADING, len(task))) for task in self.tasks]
        least.append(len("100.0"))
        return [
            max(width, *(line[at].cell_len for line in cells)) for at, width in enumerate(least)
        ]

    def _lists(self, sign: str, width: int) -> Iterator[Any]:
        """The names of architectures, with their tasks below, as many in a line as fit."""
        from rich.table import Table
        from rich.text import Text

        blocks = [self._items(row, sign) for row in self.rows]
        widest = max(item.cell_len for items in blocks for item in items)
        across = max(1, width // widest)
        for row, items in zip(self.rows, blocks, strict=True):
            mean = Text.assemble("  mean ", row.mean.shown(sign)) if row.mean.text else Text()
            yield Text(row.name, "bold", overflow="fold") + mean
            grid = Table.grid()
            for _ in range(across):
                grid.add_column(width=min(widest, width), overflow="fold")
            for at in range(0, len(items), across):
                grid.add_row(*items[at : at + across])
            yield grid

    def _items(self, row: Row, sign: str) -> list[Any]:
        from rich.text import Text

        return [
            Text(f"  {task} ") + (each.shown(sign) if each.text else Text("-"))
            for task, each in zip(self.tasks, row.entries, strict=True)
        ]
