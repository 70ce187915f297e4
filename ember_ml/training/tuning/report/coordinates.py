"""Section with parallel coordinates: a line for each trial through its hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ember_ml.training.reports.colors import heat_class
from ember_ml.training.reports.markup import section, text
from ember_ml.training.tuning.live import show_number
from ember_ml.training.tuning.ranges import Choice, Range
from ember_ml.training.tuning.report.axes import Scale
from ember_ml.training.tuning.report.gather import TuningReport
from ember_ml.training.tuning.trial import Trial

GAP, HEIGHT, TOP, BOTTOM, SIDE = 130, 300, 40, 28, 60
MAX_LABEL = 16
"""Maximum length of the label of a choice."""
MAX_LINES = 200
"""Maximum number of trials that are drawn, best first."""


def coordinates_section(report: TuningReport) -> str:
    """Return the section with a line for each completed trial."""
    if len(report.ranked) < 2:
        return ""
    keys = list(report.tuner.space)
    width = 2 * SIDE + GAP * len(keys)
    scale = Scale.of([report.score(trial) for trial in report.ranked])
    axes = [_axis(at, key, report.tuner.space[key]) for at, key in enumerate(keys)]
    axes.append(_score_axis(len(keys), report.metric, scale))
    shown = report.ranked[:MAX_LINES]
    lines = [_line(report, trial, keys, scale) for trial in reversed(shown)]  # the best on top
    svg = (
        f'<svg viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="Parallel coordinates">'
        f"{''.join(axes)}{''.join(lines)}</svg>"
    )
    note = (
        "Each line is a completed trial; darker lines (lighter ones in dark mode) have better "
        "scores, on the axis at the right. Point at a line for its values."
    )
    return section("coordinates", "Parallel coordinates", f"<figure>{svg}</figure>", note)


def _height(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _axis(at: int, key: str, entry: Range) -> str:
    """Return the axis of a hyperparameter, with its ends or its choices."""
    if isinstance(entry, Choice):
        marks = [(position(entry, value), _short(show_number(value))) for value in entry.values]
    else:
        marks = [(share, show_number(entry.at(share))) for share in (0.0, 0.5, 1.0)]
    return _drawn_axis(at, key, marks)


def _short(label: str) -> str:
    return label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _score_axis(at: int, metric: str, scale: Scale) -> str:
    return _drawn_axis(
        at, metric, [(scale.share(tick), show_number(tick)) for tick in scale.ticks()]
    )


def _drawn_axis(at: int, title: str, marks: list[tuple[float, str]]) -> str:
    x = SIDE + at * GAP
    name = title if len(title) <= 18 else "\N{HORIZONTAL ELLIPSIS}" + title[-17:]
    ticks = "".join(
        f'<text class="tick end" x="{x - 4}" y="{_height(share) + 3.5:.1f}">{text(label)}</text>'
        for share, label in marks
    )
    return (
        f'<path class="grid" d="M{x} {TOP}V{HEIGHT - BOTTOM}"/>'
        f'<text class="label" x="{x}" y="{TOP - 16}">{text(name)}'
        f"<title>{text(title)}</title></text>"
        f"{ticks}"
    )


def position(entry: Range, value: Any) -> float:
    """Return the position of a value on its axis, in [0, 1].

    Args:
        entry: Range of the hyperparameter.
        value: The value.
    """
    if isinstance(entry, Choice):
        return (entry.index(value) + 0.5) / len(entry.values)
    return entry.encode(value)[0]


def _line(report: TuningReport, trial: Trial, keys: list[str], scale: Scale) -> str:
    params: Mapping[str, Any] = trial.params
    points = [
        (SIDE + at * GAP, _height(position(report.tuner.space[key], params[key])))
        for at, key in enumerate(keys)
        if key in params
    ]
    share = scale.share(report.score(trial))
    points.append((SIDE + len(keys) * GAP, _height(share)))
    quality = share if report.mode == "max" else 1 - share
    path = "M" + "L".join(f"{x:g} {y:.1f}" for x, y in points)
    words = ", ".join(f"{key} {show_number(value)}" for key, value in params.items())
    tip = f"trial {trial.id}: {report.metric} {show_number(report.score(trial))}; {words}"
    color = heat_class(0.15 + 0.85 * quality)
    return (
        f'<path class="line trial" style="--c:var(--{color})" d="{path}">'
        f"<title>{text(tip)}</title></path>"
    )
