"""Sections with the ranking and the accuracy of each architecture on each task."""

from __future__ import annotations

from ember_ml.mad.report.colors import STEPS, heat_class, line_classes
from ember_ml.mad.report.export import NOTHING, percent, show
from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.markup import dot, name_cell, section, table, task_title, text
from ember_ml.mad.scores import AVERAGES, Score, common_tasks, ranking, task_of

SWITCH = """<fieldset class="switch"><legend>Accuracy</legend>
<label><input type="radio" name="average" value="micro" checked> over all targets</label>
<label><input type="radio" name="average" value="macro"> mean over classes</label></fieldset>"""


def ranking_section(report: Report) -> str:
    """Return the section with architectures ranked by mean accuracy, as bars."""
    tasks = common_tasks(report.cells.values())
    if not tasks:
        missing = "task has results of every architecture" if report.cells else "results"
        return section("ranking", "Ranking", f'<p class="note">No {missing} yet.</p>')
    bars = "".join(_bars(report, average) for average in AVERAGES)
    over = f"the {len(tasks)} tasks" if len(tasks) > 1 else f"the task {text(tasks[0])}"
    note = f"Mean test accuracy in percent, over {over} that every architecture has results of."
    return section("ranking", "Ranking", SWITCH + bars, note)


def _bars(report: Report, average: str) -> str:
    items = "".join(
        f"<li>{dot(report.architectures.index(name))}"
        f'<span class="name">{text(name)}</span>'
        f'<span class="bar {_color(report, name)}"><i style="width:{_width(score)}%"></i></span>'
        f'<span class="value">{_value(score)}</span></li>'
        for name, score in ranking(report.cells.values(), average)
    )
    return f'<ol class="ranking {average}">{items}</ol>'


def _color(report: Report, name: str) -> str:
    return line_classes(report.architectures.index(name)).split()[0]


def _width(score: Score) -> str:
    return f"{100 * score.mean:.2f}" if score.mean == score.mean else "0"


def _value(score: Score) -> str:
    small = "" if score.interval is None else f" <small>± {percent(score.interval)}</small>"
    return percent(score.mean) + small


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
    if any(cell.accuracy.interval is not None for cell in report.cells.values()):
        note += " ± is half the width of the 95 % confidence interval over the seeds."
    if any(report.is_partial(*key) for key in report.cells):
        note += " A star marks scores with missing or failed runs, which may still change."
    return note


def _row(report: Report, name: str) -> str:
    cells = [_cell(report, name, task) for task in report.tasks]
    complete = all((name, task) in report.cells for task in report.tasks)
    means = {average: _mean(report, name, average) if complete else None for average in AVERAGES}
    return name_cell(name, report.architectures.index(name)) + "".join(cells) + _heat(means, "")


def _mean(report: Report, name: str, average: str) -> Score | None:
    scores = [report.score(name, task, average) for task in report.tasks]
    means = [score.mean for score in scores if score is not None]
    return Score(sum(means) / len(means), None, 0)


def _cell(report: Report, name: str, task: str) -> str:
    scores = {average: report.score(name, task, average) for average in AVERAGES}
    if scores["micro"] is not None:
        return _heat(scores, "*" if report.is_partial(name, task) else "")
    runs = [run for run, _ in report.failed]
    if any(run.architecture == name and task_of(run) == task for run in runs):
        return _empty("failed", "all runs failed", "none bad")
    return _empty(NOTHING, "no result yet")


def _empty(shown: str, why: str, kind: str = "none") -> str:
    return f'<td class="{kind}" data-micro="" data-macro="" title="{why}">{shown}</td>'


def _heat(scores: dict[str, Score | None], mark: str) -> str:
    if any(score is None for score in scores.values()):
        return _empty(NOTHING, "not all tasks are done")
    values = {average: score for average, score in scores.items() if score is not None}
    sort = " ".join(f'data-{a}="{_key(score.mean)}"' for a, score in values.items())
    shown = "".join(
        f'<span class="{a} {heat_class(score.mean)}" title="{text(show(score))} %">'
        f"{_value(score)}{mark}</span>"
        for a, score in values.items()
    )
    return f"<td {sort}>{shown}</td>"


def _key(value: float) -> str:
    return f"{value:.6f}" if value == value else ""


def _scale() -> str:
    steps = "".join(f'<i class="q{at}"></i>' for at in range(STEPS + 1))
    return f'<div class="scale" aria-hidden="true">0 %<span>{steps}</span>100 %</div>'
