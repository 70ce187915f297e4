"""Sections with the ranking and the accuracy of each architecture on each task."""

from __future__ import annotations

from collections.abc import Collection

from ember_ml.mad.compare import Standing, standings
from ember_ml.mad.report.export import NOTHING, percent, show, show_interval
from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.titles import task_title
from ember_ml.mad.scores import AVERAGES, Score, common_tasks, overall, ranking, task_of
from ember_ml.training.reports.colors import STEPS, heat_class, line_classes
from ember_ml.training.reports.markup import dot, name_cell, section, table, text

SWITCH = """<fieldset class="switch"><legend>Accuracy</legend>
<label><input type="radio" name="average" value="micro" checked> over all targets</label>
<label><input type="radio" name="average" value="macro"> mean over classes</label></fieldset>"""

MIN_SEEDS = 4
"""Number of seeds from which the bootstrap interval is narrower than their range."""
EN_DASH = "\N{EN DASH}"
TIES_NOTE = (
    "Architectures are tied if a paired comparison on the same seeds and examples cannot tell them "
    "apart at the 95 % level; the rank is then a range."
)


def ranking_section(report: Report) -> str:
    """Return the section with architectures ranked by mean accuracy, as bars."""
    tasks = common_tasks(report.cells.values())
    if not tasks:
        missing = "task has results of every architecture" if report.cells else "results"
        return section("ranking", "Ranking", f'<p class="note">No {missing} yet.</p>')
    bars = "".join(_bars(report, average) for average in AVERAGES)
    over = f"the {len(tasks)} tasks" if len(tasks) > 1 else f"the task {text(tasks[0])}"
    note = (
        f"Mean test accuracy in percent, over {over} for which every architecture has results. "
        f"{intervals_note(report)} {TIES_NOTE}"
    )
    return section("ranking", "Ranking", SWITCH + bars, note)


def intervals_note(report: Report) -> str:
    """Return a sentence about the intervals, and about their limits with one or few seeds."""
    counts = [cell.accuracy.seeds for cell in report.cells.values()]
    if max(counts) == 1:
        return (
            "<strong>There is one seed.</strong> The whiskers are 95 % intervals over the test "
            "examples alone (Wilson): other weights or training data may change a score, and the "
            "order, by more. Repeat the sweep with --seeds 3 or more."
        )
    few = (
        " With two or three seeds, that is their range; it covers less than 95 %."
        if min(counts) < MIN_SEEDS
        else ""
    )
    return f"The whiskers are 95 % bootstrap intervals over the seeds.{few}"


def _bars(report: Report, average: str) -> str:
    items = "".join(_bar(report, each) for each in standings(report.cells.values(), average))
    return f'<ol class="ranking {average}">{items}</ol>'


def _bar(report: Report, standing: Standing) -> str:
    name, score = standing.architecture, standing.score
    tied = ", ".join(standing.tied_with)
    ties = f'<small class="tied">tied with {text(tied)}</small>' if tied else ""
    return (
        f'<li><span class="rank">{standing.rank.replace("-", EN_DASH)}</span>'
        f"{dot(report.architectures.index(name))}"
        f'<span class="name">{text(name)}{ties}</span>'
        f'<span class="bar {_color(report, name)}"><i style="width:{_width(score.mean)}%"></i>'
        f"{_whisker(score)}</span>"
        f'<span class="value">{_value(score)}</span></li>'
    )


def _whisker(score: Score) -> str:
    low, high = score.interval
    if low != low or high != high:
        return ""
    return f'<b style="left:{_width(low)}%;right:{_width(1 - high)}%"></b>'


def _color(report: Report, name: str) -> str:
    return line_classes(report.architectures.index(name)).split()[0]


def _width(share: float) -> str:
    return f"{100 * share:.2f}" if share == share else "0"


def _value(score: Score) -> str:
    return f"{percent(score.mean)} <small>{show_interval(score)}</small>"


def heat_section(report: Report) -> str:
    """Return the section with a heat map of the accuracies."""
    if not report.cells:
        return ""
    order = [name for name, _ in ranking(report.cells.values())]
    names = order + [name for name in report.architectures if name not in order]
    head = ["Architecture", *map(task_title, report.tasks), "Mean"]
    rows = (_row(report, name) for name in names)
    complete = len(common_tasks(report.cells.values())) == len(report.tasks)
    last = len(head) - 1 if complete else None
    body = table(head, rows, "heat", "Accuracy by architecture and task", last) + _scale()
    return section("tasks", "Tasks", body, _note(report))


def _note(report: Report) -> str:
    note = "Test accuracy in percent. Click a heading to sort by its column."
    if any(report.num_settings(task) > 1 for task in report.tasks):
        note += " A task with several settings shows the mean over them."
    note += (
        " Small numbers are the 95 % interval. A frame marks the best score of a task and those "
        "that cannot be told apart from it."
    )
    if any(report.is_partial(*key) for key in report.cells):
        note += " A star marks scores with missing or failed runs, which may still change."
    return note


def _row(report: Report, name: str) -> str:
    cells = [_cell(report, name, task) for task in report.tasks]
    complete = all((name, task) in report.cells for task in report.tasks)
    own = [report.cells[name, task] for task in report.tasks if complete]
    means = {average: overall(own, average) if complete else None for average in AVERAGES}
    return name_cell(name, report.architectures.index(name)) + "".join(cells) + _heat(means, "")


def _cell(report: Report, name: str, task: str) -> str:
    scores = {average: report.score(name, task, average) for average in AVERAGES}
    if scores["micro"] is not None:
        best = {average for average in AVERAGES if name in best_names(report, task, average)}
        return _heat(scores, "*" if report.is_partial(name, task) else "", best)
    runs = [run for run, _ in report.failed]
    if any(run.architecture == name and task_of(run) == task for run in runs):
        return _empty("failed", "all runs failed", "none bad")
    return _empty(NOTHING, "no result yet")


def _empty(shown: str, why: str, kind: str = "none") -> str:
    return f'<td class="{kind}" data-micro="" data-macro="" title="{why}">{shown}</td>'


def best_names(report: Report, task: str, average: str) -> set[str]:
    """Return the best architecture on a task, and those that cannot be told apart from it."""
    places = standings([cell for cell in report.cells.values() if cell.task == task], average)
    return {places[0].architecture, *places[0].tied_with} if len(places) > 1 else set()


def _heat(scores: dict[str, Score | None], mark: str, best: Collection[str] = frozenset()) -> str:
    if any(score is None for score in scores.values()):
        return _empty(NOTHING, "not all tasks are done")
    values = {average: score for average, score in scores.items() if score is not None}
    sort = " ".join(f'data-{a}="{_key(score.mean)}"' for a, score in values.items())
    shown = "".join(
        f'<span class="{a} {heat_class(score.mean)}{" best" if a in best else ""}" '
        f'title="{text(show(score))}">'
        f"{_value(score)}{mark}</span>"
        for a, score in values.items()
    )
    return f"<td {sort}>{shown}</td>"


def _key(value: float) -> str:
    return f"{value:.6f}" if value == value else ""


def _scale() -> str:
    steps = "".join(f'<i class="q{at}"></i>' for at in range(STEPS + 1))
    return f'<div class="scale" aria-hidden="true">0 %<span>{steps}</span>100 %</div>'
