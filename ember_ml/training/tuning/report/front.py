"""Section with the Pareto front of two or more objectives."""

from __future__ import annotations

from ember_ml.training.reports.colors import line_classes
from ember_ml.training.reports.markup import section, text
from ember_ml.training.tuning.live import show_number
from ember_ml.training.tuning.report.axes import Frame, Scale
from ember_ml.training.tuning.report.gather import TuningReport
from ember_ml.training.tuning.trial import Trial


def front_section(report: TuningReport) -> str:
    """Return the section with a plot of the metric against each other objective."""
    others = [name for name in report.tuner.objectives if name != report.metric]
    if not others or not report.ranked:
        return ""
    figures = "".join(_figure(report, name) for name in others)
    note = (
        "Each point is a completed trial. The line connects the trials that no other trial exceeds "
        "in all objectives."
    )
    return section("front", "Pareto front", figures, note)


def _figure(report: TuningReport, other: str) -> str:
    frame = Frame(
        Scale.of([trial.scores[other] for trial in report.ranked]),
        Scale.of([report.score(trial) for trial in report.ranked]),
        other,
        report.metric,
    )
    front = sorted(report.tuner.front, key=lambda trial: trial.scores[other])
    line = frame.path([(trial.scores[other], report.score(trial)) for trial in front])
    best = {trial.id for trial in front}
    points = "".join(_point(report, frame, trial, other, best) for trial in report.ranked)
    title = f"{report.metric} against {other}"
    body = f'<g class="{line_classes(0)}"><path class="line" d="{line}"/></g>{points}'
    plot = frame.svg(title, body)
    return f'<figure class="wide"><figcaption>{text(title)}</figcaption>{plot}</figure>'


def _point(report: TuningReport, frame: Frame, trial: Trial, other: str, best: set[int]) -> str:
    x, y = frame.place(trial.scores[other], report.score(trial))
    values = ", ".join(f"{name} {show_number(value)}" for name, value in trial.scores.items())
    color = line_classes(0 if trial.id in best else 1)
    return (
        f'<g class="{color}"><circle cx="{x:.1f}" cy="{y:.1f}" r="3.2">'
        f"<title>{text(f'trial {trial.id}: {values}')}</title></circle></g>"
    )
