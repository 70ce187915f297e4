"""Table of scores that adapts to the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

NAME_WIDTH = 12
"""Minimum width of the column of names; longer names are wrapped."""
HEADING_WIDTH = 9
"""Width above which a heading is wrapped."""
PROGRESS_WIDTH = len("45 @60%")
"""Width reserved for runs in progress."""


class TableCell(NamedTuple):
    """Content of a cell."""

    text: str = ""
    interval: str = ""
    style: str = ""
    failed: bool = False
    """Whether some of its runs failed."""

    def render(self, *, intervals: bool) -> Text:
        """Return the text, with the interval if there is one and it is requested."""
        from rich.text import Text

        text = Text(self.text, self.style, overflow="fold")
        if intervals and self.interval:
            text.append(f" ({self.interval})", "dim")
        return text.append("!", "red") if self.failed else text


class TableRow(NamedTuple):
    """An architecture with its score on each task and their mean."""

    name: str
    cells: list[TableCell]
    mean: TableCell


class ScoreTable:
    """Rich renderable of scores that never truncates a number.

    Intervals are omitted if the terminal is too narrow for them. If it is too narrow for one
    column per task, the tasks are listed below the name of each architecture.

    Args:
        title: Line above the table.
        tasks: Headings of the columns.
        rows: One row for each architecture.
    """

    def __init__(self, title: str, tasks: Sequence[str], rows: Sequence[TableRow]) -> None:
        self.title = title
        self.tasks = tasks
        self.rows = rows

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield the renderables for the width of the console."""
        from rich.text import Text

        yield Text(self.title, "table.title", overflow="fold")
        for intervals in (True, False):
            table = self._table(options.max_width, intervals=intervals)
            if table is not None:
                yield table
                return
        yield from self._lists(options.max_width)

    def _table(self, width: int, *, intervals: bool) -> Table | None:
        """Return a table with one column per task; None if it does not fit."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        cells = [
            [each.render(intervals=intervals) for each in (*row.cells, row.mean)]
            for row in self.rows
        ]
        widths = self._widths(cells)
        remaining = width - sum(widths) - len(widths)  # one space between columns
        if remaining < NAME_WIDTH:
            return None
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        longest = max(Text(row.name).cell_len for row in self.rows)
        name_width = min(remaining, max(NAME_WIDTH, longest))
        table.add_column("architecture", overflow="fold", width=name_width)
        for task, column_width in zip((*self.tasks, "mean"), widths, strict=True):
            table.add_column(Text(task), justify="right", overflow="fold", width=column_width)
        table.columns[-1].style = "bold"
        for row, line in zip(self.rows, cells, strict=True):
            table.add_row(Text(row.name), *line)
        return table

    def _widths(self, cells: Sequence[Sequence[Text]]) -> list[int]:
        """Return the widths of the columns after the names."""
        minimum = [max(PROGRESS_WIDTH, min(HEADING_WIDTH, len(task))) for task in self.tasks]
        minimum.append(len("100.0"))
        return [
            max(width, *(line[at].cell_len for line in cells)) for at, width in enumerate(minimum)
        ]

    def _lists(self, width: int) -> Iterator[RenderableType]:
        """Yield each architecture with its tasks below, as many per line as fit."""
        from rich.table import Table
        from rich.text import Text

        blocks = [self._items(row) for row in self.rows]
        widest = max(item.cell_len for items in blocks for item in items)
        per_line = max(1, width // widest)
        for row, items in zip(self.rows, blocks, strict=True):
            mean = (
                Text.assemble("  mean ", row.mean.render(intervals=True))
                if row.mean.text
                else Text()
            )
            yield Text(row.name, "bold", overflow="fold") + mean
            grid = Table.grid()
            for _ in range(per_line):
                grid.add_column(width=min(widest, width), overflow="fold")
            for at in range(0, len(items), per_line):
                grid.add_row(*items[at : at + per_line])
            yield grid

    def _items(self, row: TableRow) -> list[Text]:
        from rich.text import Text

        return [
            Text(f"  {task} ") + (each.render(intervals=True) if each.text else Text("-"))
            for task, each in zip(self.tasks, row.cells, strict=True)
        ]
