"""Section with the best score so far, against the same trials in random order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml.training.reports.colors import line_classes
from ember_ml.training.reports.markup import legend, section
from ember_ml.training.tuning.report.axes import Frame, Scale
from ember_ml.training.tuning.report.gather import TuningReport

LINES = ("this search", "random order of its trials")


def progress_section(report: TuningReport) -> str:
    """Return the section with the best score after each trial."""
    scores = [report.score(trial) for trial in report.trials if trial.state == "done"]
    if len(scores) < 2:
        return ""
    curves = running_best(scores, report.mode), expected_best(scores, report.mode)
    steps = range(1, len(scores) + 1)
    values = [value for curve in curves for value in curve]
    frame = Frame(
        Scale(1, len(scores)), Scale.of(values), "completed trials", f"best {report.metric}"
    )
    body = "".join(
        _line(frame, list(zip(steps, curve, strict=True)), at) for at, curve in enumerate(curves)
    )
    note = (
        "Best score after each completed trial, and its expectation if the same trials came in "
        "random order. A search that learns from its trials is ahead of that line only if it found "
        "good values early."
    )
    plot = frame.svg("Best score after each trial", body)
    figure = f'<figure class="wide">{plot}</figure>'
    return section("history", "History against random", legend(LINES, "Lines") + figure, note)


def _line(frame: Frame, points: Sequence[tuple[float, float]], place: int) -> str:
    return (
        f'<g data-line="{place}" class="{line_classes(place)}">'
        f'<path class="line" d="{frame.path(points)}"><title>{LINES[place]}</title></path></g>'
    )


def running_best(scores: Sequence[float], mode: str) -> list[float]:
    """Return the best score after each trial.

    Args:
        scores: Scores in the order of the trials.
        mode: "min" or "max".

    Example:
        >>> from ember_ml.training.tuning.report.progress import running_best
        >>> running_best([3.0, 1.0, 2.0], "min")
        [3.0, 1.0, 1.0]
    """
    better = max if mode == "max" else min
    return [better(scores[: at + 1]) for at in range(len(scores))]


def expected_best(scores: Sequence[float], mode: str) -> list[float]:
    """Return the expected best of k scores drawn without replacement, for each k.

    The best of k is the score of rank i (from 1, worst first) with the probability
    C(i - 1, k - 1) / C(n, k).

    Args:
        scores: Scores of n trials.
        mode: "min" or "max".

    Example:
        >>> from ember_ml.training.tuning.report.progress import expected_best
        >>> expected_best([3.0, 1.0, 2.0], "min")
        [2.0, 1.3333333333333333, 1.0]
    """
    ordered, count = sorted(scores, reverse=mode == "min"), len(scores)
    return [
        math.fsum(score * math.comb(at, size - 1) for at, score in enumerate(ordered))
        / math.comb(count, size)
        for size in range(1, count + 1)
    ]
