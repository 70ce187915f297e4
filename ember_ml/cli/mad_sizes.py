"""`ember mad sizes`: whether architectures are compared at the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ember_ml.cli import output

if TYPE_CHECKING:
    from ember_ml.mad.sizes import Size
    from ember_ml.mad.sweep import Sweep

HEADERS = "architecture", "task", "parameters", "", "state", "", "and of each token"


def show(sweep: Sweep, *, as_json: bool) -> None:
    """The size of every architecture on every task."""
    from ember_ml.mad.sizes import by_setting, sizes_of

    found = sizes_of(sweep.runs)
    if as_json:
        output.write_json([size._asdict() for size in found])
        return
    rows = [row for group in by_setting(found) for row in _rows(group)]
    output.console().print(output.table(rows, *HEADERS))


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
