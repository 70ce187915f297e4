"""Vertical and horizontal axes of the plots of a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ember_ml.training.reports.markup import text
from ember_ml.training.tuning.live import show_number

WIDTH, HEIGHT = 520, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 18, 14, 42


class Scale(NamedTuple):
    """Linear map from values to [0, 1]."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Scale:
        """Return the scale that spans values."""
        low, high = min(values), max(values)
        if high - low > 1e-12 * abs(low):
            return cls(low, high)
        margin = 0.5 * max(1.0, abs(low))  # equal, or as good as equal
        return cls(low - margin, high + margin)

    def share(self, value: float) -> float:
        """Return the position of a value."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Return about five round values within the scale."""
        rough = (self.high - self.low) / 4
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= rough)
        first = math.ceil(self.low / step)
        count = math.floor(self.high / step) - first + 1
        return [step * (first + at) for at in range(count)]


class Frame(NamedTuple):
    """Area of a plot with two linear axes."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return the coordinates of a point."""
        return (
            LEFT + self.x.share(x) * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - self.y.share(y) * (HEIGHT - TOP - BOTTOM),
        )

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """Return the SVG path through points."""
        places = [self.place(*point) for point in points]
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)

    def svg(self, title: str, body: str) -> str:
        """Return the SVG of a plot with its axes.

        Args:
            title: Accessible name.
            body: SVG of the content.
        """
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)}">'
            f"{''.join(self._axes())}{body}</svg>"
        )

    def _axes(self) -> list[str]:
        bottom, middle = HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2
        lines = [
            f'<text class="label" x="{middle:g}" y="{HEIGHT - 5}">{text(self.x_label)}</text>',
            f'<text class="label" transform="translate(11 {(TOP + bottom) / 2:g}) rotate(-90)">'
            f"{text(self.y_label)}</text>",
        ]
        for tick in self.x.ticks():
            x, _ = self.place(tick, self.y.low)
            lines.append(
                f'<path class="grid" d="M{x:.1f} {bottom}v4"/>'
                f'<text class="tick" x="{x:.1f}" y="{bottom + 16}">{show_number(tick)}</text>'
            )
        for tick in self.y.ticks():
            _, y = self.place(self.x.low, tick)
            lines.append(
                f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
                f'<text class="tick end" x="{LEFT - 5}" y="{y + 3.5:.1f}">'
                f"{show_number(tick)}</text>"
            )
        return lines
