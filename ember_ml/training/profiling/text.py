"""A profile as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ember_ml.training.profiling.result import Profile, Row
from ember_ml.training.profiling.sentences import summary
from ember_ml.training.profiling.units import show_flops, show_seconds, show_share

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

MAX_OPS = 12
"""Number of ops in the table."""
MAX_MODULES = 24
"""Number of modules in the table, those with the most time."""


def rendered(profile: Profile) -> Group:
    """Return the main numbers, and tables of the groups, ops and modules.

    Args:
        profile: The profile.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 2, 0, 0))
    for name, value in summary(profile):
        head.add_row(Text(name, style="bold cyan"), Text(value))
    title = f"Profile of {profile.title}, {profile.backend} on {profile.device}"
    parts: list[RenderableType] = [Text(title, style="bold"), head]
    parts.append(_table("group", profile.groups, profile))
    parts.append(_table("op", profile.ops[:MAX_OPS], profile))
    modules = _largest(profile.modules, MAX_MODULES)
    if modules:
        parts.append(_table("module", modules, profile))
    return Group(*parts)


def _largest(rows: Sequence[Row], count: int) -> list[Row]:
    """Return the rows with the most time, in their order."""
    kept = sorted(rows, key=lambda row: -row.seconds)[:count]
    return [row for row in rows if row in kept]


def _table(kind: str, rows: Sequence[Row], profile: Profile) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title_justify="left")
    table.add_column(kind, overflow="fold", style="bold cyan")
    for name in ("calls", "forward", "backward", "share", "rate", "of peak"):
        table.add_column(name, justify="right", no_wrap=True)
    total = profile.native or 1.0
    peak = profile.peak.flops if profile.peak is not None else 0.0
    for row in rows:
        table.add_row(
            Text(row.name),
            f"{row.calls:,.0f}",
            show_seconds(row.forward),
            show_seconds(row.backward),
            show_share(row.seconds / total),
            show_flops(row.rate, "FLOP/s") if row.flops else "",
            show_share(row.rate / peak) if peak and row.flops else "",
        )
    return table
