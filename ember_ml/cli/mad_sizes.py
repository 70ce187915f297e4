"""`ember mad sizes`: whether architectures are compared at the same size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml.cli import output

if TYPE_CHECKING:
    from ember_ml.mad.sizes import Size
    from ember_ml.mad.sweep import Sweep

HEADERS = "architecture", "task", "parameters", "", "state", "", "per token"
NAMES = (0, 1)
"""The columns that hold names; the others hold numbers."""
ROOM = 24
"""The least width for the names; where there is less, there are no columns."""


def show(sweep: Sweep, *, as_json: bool) -> None:
    """The size of every architecture on every task."""
    from ember_ml.mad.sizes import by_setting, sizes_of

    found = sizes_of(sweep.runs)
    if as_json:
        output.write_json([size._asdict() for size in found])
        return
    rows = [row for group in by_setting(found) for row in _rows(group)]
    console = output.console()
    for part in layout(rows, console.width):
        console.print(part)


def layout(rows: Sequence[tuple[str, ...]], width: int) -> Iterator[Any]:
    """A table whose names are broken if they must be, but no number; or lists, if it is narrow."""
    columns = list(zip(HEADERS, *rows, strict=True))
    numbers = columns[len(NAMES) :]
    taken = sum(max(len(cell) for cell in column) + output.GAP for column in numbers) + output.GAP
    if width - taken >= ROOM:
        yield output.table(rows, *HEADERS, folded=NAMES)
    else:
        yield from map(_list, rows)


def _list(row: tuple[str, ...]) -> Any:
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
    fixed = [size.state for size in group if not size.state_per_token]
    least = min(fixed, default=0)
    return [
        (
            size.architecture,
            size.task,
            f"{size.parameters:,}",
            f"{size.parameters / fewest:.2f}x",
            f"{size.state:,}",
            "" if size.state_per_token or not least else f"{size.state / least:.2f}x",
            f"{size.state_per_token:,}" if size.state_per_token else "",
        )
        for size in group
    ]
