"""`ember mad sizes`: parameter counts and state sizes of architectures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ember_ml.cli import output

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ember_ml.mad.sizes import Size
    from ember_ml.mad.sweep import Sweep

HEADERS = "architecture", "task", "parameters", "", "state", "", "per token"
NAME_COLUMNS = (0, 1)
"""Columns that contain names; the others contain numbers."""
MIN_NAME_WIDTH = 24
"""Minimum total width of the names in a table."""


def show(sweep: Sweep, *, as_json: bool) -> None:
    """Print the size of every architecture on every task."""
    from ember_ml.mad.sizes import by_setting, sizes_of

    sizes = sizes_of(sweep.runs)
    if as_json:
        output.write_json([size._asdict() for size in sizes])
        return
    rows = [row for group in by_setting(sizes) for row in _rows(group)]
    console = output.console()
    for part in layout(rows, console.width):
        console.print(part)


def layout(rows: Sequence[tuple[str, ...]], width: int) -> Iterator[RenderableType]:
    """Yield a table that wraps names but not numbers; in a narrow terminal, one list per row."""
    columns = list(zip(HEADERS, *rows, strict=True))
    numbers = columns[len(NAME_COLUMNS) :]
    taken = sum(max(len(cell) for cell in column) + output.GAP for column in numbers) + output.GAP
    if width - taken >= MIN_NAME_WIDTH:
        yield output.table(rows, *HEADERS, folded=NAME_COLUMNS)
    else:
        yield from map(_list, rows)


def _list(row: tuple[str, ...]) -> RenderableType:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    name, task, parameters, ratio, state, state_ratio, per_token = row
    text = f"{parameters} parameters ({ratio}), state {state}"
    text += f" ({state_ratio})" if state_ratio else ""
    text += f" and {per_token} per token" if per_token else ""
    title = Text.assemble((name, "bold cyan"), f" {task}", overflow="fold")
    return Group(title, Padding(Text(text), (0, 0, 0, 2)))


def _rows(group: Sequence[Size]) -> list[tuple[str, ...]]:
    fewest = min(size.parameters for size in group)
    smallest = min((size.state for size in group if not size.state_per_token), default=0)
    return [
        (
            size.architecture,
            size.task,
            f"{size.parameters:,}",
            f"{size.parameters / fewest:.2f}x",
            f"{size.state:,}",
            "" if size.state_per_token or not smallest else f"{size.state / smallest:.2f}x",
            f"{size.state_per_token:,}" if size.state_per_token else "",
        )
        for size in group
    ]
