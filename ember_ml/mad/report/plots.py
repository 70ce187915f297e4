"""Sections with line plots, drawn as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ember_ml.mad.report.difficulty import Curve, Points, curves, variables
from ember_ml.mad.report.export import percent
from ember_ml.mad.report.gather import Report
from ember_ml.training.reports.colors import line_classes
from ember_ml.training.reports.markup import legend, section, text

WIDTH, HEIGHT = 340, 216
LEFT, RIGHT, TOP, BOTTOM = 44, 20, 10, 38
MAX_MARKS = 24
"""Maximum number of points of a line that show their value."""
LABELS = {
    "vocab_size": "vocabulary size",
    "seq_len": "sequence length",
    "num_train": "training examples",
    "frac_noise": "fraction of noise",
    "num_tokens_to_copy": "tokens to copy",
}
"""Axis labels of task fields."""


def curves_section(report: Report) -> str:
    """Return the section with the learning curves of each task."""
    figures = []
    for task in report.tasks:
        lines = curves(report, task)
        steps = [step for curve in lines.values() for step, _ in curve.mean]
        if steps:
            axis = steps_axis("training step", max(steps))
            figures.append(_figure(report, task, f"Learning curves of {task}", axis, lines))
    note = (
        "Validation accuracy over all targets during training. A line that ends early reached the "
        "accuracy at which training stops. Click a name to highlight its lines."
        + seeds_note(report)
    )
    return section("curves", "Learning curves", _grid_of(report, figures), note)


def difficulty_section(report: Report) -> str:
    """Return the section with a plot for each field that makes a task harder."""
    figures = []
    for variable in variables(report):
        label = LABELS.get(variable.name, variable.name)
        values = [value for curve in variable.lines.values() for value, _ in curve.mean]
        title = f"{variable.task} over {label}"
        axis = values_axis(label, values)
        figures.append(_figure(report, variable.task, title, axis, variable.lines))
    note = "Test accuracy over all targets, as one field of a task changes." + seeds_note(report)
    return section("difficulty", "Difficulty", _grid_of(report, figures), note)


def _grid_of(report: Report, figures: list[str]) -> str:
    if not figures:
        return ""
    return f'{legend(report.architectures)}<div class="plots">{"".join(figures)}</div>'


class Line(NamedTuple):
    """Line of an architecture in a plot."""

    name: str
    place: int
    """Position in the list of architectures."""
    curve: Curve
    """Accuracies along the axis."""


class Axis(NamedTuple):
    """Horizontal axis."""

    label: str
    low: float
    high: float
    ticks: list[float]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return the x coordinate of a value."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)


def steps_axis(label: str, last: float) -> Axis:
    """Return an axis that starts at 0, with round ticks."""
    size = 10 ** math.floor(math.log10(max(last, 1) / 4))
    size = next(size * k for k in (1, 2, 2.5, 5, 10) if last / (size * k) <= 4.5)
    return Axis(label, 0, last, [size * k for k in range(int(last / size) + 1)])


def values_axis(label: str, values: Sequence[float]) -> Axis:
    """Return an axis with a tick at each value; logarithmic if all values are at least 1."""
    ticks = sorted(set(values))
    return Axis(label, ticks[0], ticks[-1], ticks, logarithmic=ticks[0] >= 1)


def _figure(report: Report, caption: str, title: str, axis: Axis, lines: dict[str, Curve]) -> str:
    drawn = [Line(name, report.architectures.index(name), curve) for name, curve in lines.items()]
    return f"<figure><figcaption>{text(caption)}</figcaption>{plot(title, axis, drawn)}</figure>"


def plot(title: str, axis: Axis, lines: Sequence[Line]) -> str:
    """Return the SVG of a plot of accuracies."""
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
    return (
        f'<g data-line="{line.place}" class="{line_classes(line.place)}">'
        f"{_band(axis, line.curve)}{_seeds(axis, line.curve)}"
        f'<path class="line" d="{_path(axis, line.curve.mean)}">'
        f"<title>{text(line.name)}</title></path>{_marks(axis, line)}</g>"
    )


def _places(axis: Axis, points: Points) -> list[tuple[float, float]]:
    return [(axis.place(x), _height(y)) for x, y in points if math.isfinite(y)]


def _path(axis: Axis, points: Points) -> str:
    places = _places(axis, points)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) if places else ""


def _band(axis: Axis, curve: Curve) -> str:
    """Return the area between the bounds of the intervals; nothing with one seed."""
    outline = _path(axis, [*curve.low, *reversed(curve.high)])
    return f'<path class="band" d="{outline}Z"/>' if outline else ""


def _seeds(axis: Axis, curve: Curve) -> str:
    if len(curve.seeds) < 2:
        return ""
    return "".join(
        f'<path class="seed" d="{_path(axis, points)}"><title>seed {seed}</title></path>'
        for seed, points in curve.seeds.items()
    )


def _marks(axis: Axis, line: Line) -> str:
    points = [(x, y) for x, y in line.curve.mean if math.isfinite(y)]
    every = math.ceil(len(points) / MAX_MARKS) or 1
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6">'
        f"<title>{_tooltip(axis, line, point)}</title></circle>"
        for at, ((x, y), point) in enumerate(zip(_places(axis, points), points, strict=True))
        if at % every == 0 or at == len(points) - 1
    )


def seeds_note(report: Report) -> str:
    """Return a sentence about the bands, if there are several seeds."""
    if len({each.run.seed for each in report.done}) < 2:
        return ""
    return (
        " Lines are means over the seeds, with a band of the 95 % bootstrap interval and the seeds "
        "as thin lines behind it."
    )


def _tooltip(axis: Axis, line: Line, point: tuple[float, float]) -> str:
    return text(f"{line.name}: {percent(point[1])} % at {axis.label} {point[0]:,g}")
