"""Line plots as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ember_ml.mad.report.colors import line_classes
from ember_ml.mad.report.export import percent
from ember_ml.mad.report.markup import text

WIDTH, HEIGHT = 340, 216
LEFT, RIGHT, TOP, BOTTOM = 44, 20, 10, 38
MARKS = 24
"""How many points of a line can be pointed at, at most."""


class Line(NamedTuple):
    """An architecture in a plot."""

    name: str
    place: int
    """In the list of architectures."""
    points: list[tuple[float, float]]
    """Accuracies, over something."""


class Axis(NamedTuple):
    """The horizontal axis."""

    label: str
    low: float
    high: float
    ticks: list[float]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where a value lies, in the units of the picture."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def steps_axis(label: str, last: float) -> Axis:
    """An axis that counts from nothing, with round ticks."""
    size = 10 ** math.floor(math.log10(max(last, 1) / 4))
    size = next(size * k for k in (1, 2, 2.5, 5, 10) if last / (size * k) <= 4.5)
    return Axis(label, 0, last, [size * k for k in range(int(last / size) + 1)])


def values_axis(label: str, values: Sequence[float]) -> Axis:
    """An axis with a tick at each value; of sizes, it grows by factors."""
    ticks = sorted(set(values))
    return Axis(label, ticks[0], ticks[-1], ticks, logarithmic=ticks[0] >= 1)


def plot(title: str, axis: Axis, lines: Sequence[Line]) -> str:
    """A plot of accuracies."""
    body = "".join([*_grid(), *_ticks(axis), *(_line(axis, line) for line in lines)])
    middle = (LEFT + WIDTH - RIGHT) / 2
    labels = (
        f'<text class="label" x="{middle:g}" y="{HEIGHT - 4}">{text(axis.label)}</text>'
        f'<text class="label" transform="translate(9 {(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)">'
        "accuracy, %</text>"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{text(title)}">'
        f"{labels}{body}</svg>"
    )


def _height(accuracy: float) -> float:
    return TOP + (1 - accuracy) * (HEIGHT - TOP - BOTTOM)


def _grid() -> list[str]:
    rows = [(value, _height(value)) for value in (0, 0.25, 0.5, 0.75, 1)]
    return [
        f'<path class="grid" d="M{LEFT} {y:g}H{WIDTH - RIGHT}"/>'
        f'<text class="tick end" x="{LEFT - 5}" y="{y + 3.5:g}">{100 * value:g}</text>'
        for value, y in rows
    ]


def _ticks(axis: Axis) -> list[str]:
    bottom = HEIGHT - BOTTOM
    return [
        f'<path class="grid" d="M{axis.place(tick):.1f} {bottom}v4"/>'
        f'<text class="tick" x="{axis.place(tick):.1f}" y="{bottom + 15}">{tick:,g}</text>'
        for tick in axis.ticks
    ]


def _line(axis: Axis, line: Line) -> str:
    known = [(x, y) for x, y in line.points if math.isfinite(y)]
    places = [(axis.place(x), _height(y)) for x, y in known]
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) if places else ""
    every = math.ceil(len(known) / MARKS) or 1
    marks = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6">'
        f"<title>{_say(axis, line, point)}</title></circle>"
        for at, ((x, y), point) in enumerate(zip(places, known, strict=True))
        if at % every == 0 or at == len(known) - 1
    ]
    return (
        f'<g data-line="{line.place}" class="{line_classes(line.place)}">'
        f'<path class="line" d="{way}"><title>{text(line.name)}</title></path>{"".join(marks)}</g>'
    )


def _say(axis: Axis, line: Line, point: tuple[float, float]) -> str:
    return text(f"{line.name}: {percent(point[1])} % at {axis.label} {point[0]:,g}")
