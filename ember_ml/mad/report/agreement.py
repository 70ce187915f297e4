"""The comparison with published scores."""

from __future__ import annotations

from ember_ml.mad.report.export import NOTHING, percent
from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.markup import cell, name_cell, section, table, task_title, text
from ember_ml.mad.report.published import PUBLISHED, TASKS, Agreement, agreements, counterparts


def agreement_section(report: Report) -> str:
    """How far the order of architectures is the published one, and the scores side by side."""
    found = agreements(report)
    if not found:
        return ""
    head = ["Task", "Architectures", "Spearman", "By chance"]
    body = table(head, map(_row, found), "numbers", "Agreement with the published scores")
    return section("agreement", "Agreement with published scores", body + _side(report), _note())


def _note() -> str:
    return (
        "Spearman's rank correlation between the order of the architectures here (mean over "
        "classes, as published) and in the published scores: 1 is the same order, 0 none in "
        "common, &minus;1 the opposite. By chance says how often an order drawn by lot agrees as "
        "well or better: with few architectures a 1 means little. Published scores come from other "
        "sizes, budgets and code, and disagree among each other, so read the order and not the "
        "values."
    )


def _row(found: Agreement) -> str:
    value = NOTHING if found.spearman != found.spearman else f"{found.spearman:.2f}"
    chance = NOTHING if found.chance != found.chance else f"{100 * found.chance:.1f} %"
    return (
        f'<th scope="row">{task_title(found.task)}</th>'
        + cell(str(found.architectures), found.architectures, "number")
        + cell(text(value).replace("-", "&minus;"), value, "number")
        + cell(chance, found.chance, "number")
    )


def _side(report: Report) -> str:
    tasks = [task for task in report.tasks if task in TASKS]
    rows = []
    for name, there in counterparts(report).items():
        cells = "".join(_pair(report, name, there, task) for task in tasks)
        head = name_cell(name, report.architectures.index(name))
        rows.append(head + cell(text(there)) + cells)
    titles = ["Architecture", "Published as", *map(task_title, tasks)]
    found = table(titles, rows, "numbers", "Scores here and published", words=2)
    return f"<details><summary>Scores here / published</summary>{found}</details>"


def _pair(report: Report, name: str, there: str, task: str) -> str:
    score = report.score(name, task, "macro")
    here = NOTHING if score is None else percent(score.mean)
    shown = f"{here} <small>/ {PUBLISHED[there][task]:.1f}</small>"
    return cell(shown, "" if score is None else score.mean, "number")
