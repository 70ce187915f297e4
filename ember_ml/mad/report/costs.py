"""What the architectures are made of, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.markup import cell, name_cell, section, table, task_title, text
from ember_ml.mad.run import Result
from ember_ml.mad.scores import setting_of
from ember_ml.mad.sizes import Size, by_setting, spread
from ember_ml.mad.store import Done

Show = Callable[[float], str]
HEAD = ("Parameters", "State", "State a token", "Time per step", "Steps")


def costs_section(report: Report) -> str:
    """Sizes and times: the ranges over the tasks, and each task by itself."""
    if not report.cells:
        return ""
    names = [name for name in report.architectures if _of(report, name)]
    rows = (_row(report, name, None) for name in names)
    whole = table(["Architecture", *HEAD], rows, "numbers", "Sizes and times")
    note = (
        "Of the runs that count, from the lowest to the highest over the tasks. State is how many "
        "numbers a model keeps of a sequence to go on with it, where the long filters of a Hyena "
        "count by their order; attention without a window keeps some of every token. "
        f"{_compared(report)}Times are of training alone, with as many runs side by side as the "
        "sweep had."
    )
    return section("costs", "Sizes and times", whole + _by_task(report, names), note)


def _compared(report: Report) -> str:
    """How far apart the sizes are on one task, at the most."""
    found, groups = [], by_setting(_sizes(report))
    for what, words in (("parameters", "parameters"), ("state", "fixed states")):
        ratios = [pair.ratio for group in groups if (pair := spread(group, what))]
        if ratios:
            found.append(f"{words} up to {max(ratios):.2f} times")
    text = " and ".join(found)
    return f"On the same task the architectures differ in {text}. " if found else ""


def _sizes(report: Report) -> list[Size]:
    return [
        Size(name, task, setting_of(run), result.parameters, result.state, result.state_per_token)
        for (name, task), found in report.cells.items()
        for run, result in found.chosen
    ]


def _by_task(report: Report, names: Sequence[str]) -> str:
    pairs = [(name, task) for name in names for task in report.tasks if _of(report, name, task)]
    rows = (_row(report, name, task) for name, task in pairs)
    found = table(
        ["Architecture", "Task", *HEAD], rows, "numbers", "Sizes and times by task", words=2
    )
    return f"<details><summary>By task</summary>{found}</details>"


def _of(report: Report, name: str, task: str | None = None) -> list[Done]:
    return [
        each
        for (architecture, known), found in report.cells.items()
        if architecture == name and task in (None, known)
        for each in found.chosen
    ]


def _row(report: Report, name: str, task: str | None) -> str:
    results = [each.result for each in _of(report, name, task)]
    cells = [
        _range(results, lambda r: r.parameters, whole),
        _range(results, lambda r: r.state, whole),
        _range(results, lambda r: r.state_per_token, whole),
        _range(results, lambda r: r.seconds_per_step, duration),
        _range(results, lambda r: r.steps, whole),
    ]
    middle = "" if task is None else cell(task_title(task), task)
    return name_cell(name, report.architectures.index(name)) + middle + "".join(cells)


def _range(results: Sequence[Result], take: Callable[[Result], Any], show: Show) -> str:
    values = [take(result) for result in results]
    low, high = show(min(values)), show(max(values))
    shown = low if low == high else f"{low} to {high}"
    return cell(f'<span class="range">{text(shown)}</span>', max(values), "number")


def whole(value: float) -> str:
    """A count, in groups of three digits."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """The time of a step, in the unit that suits it.

    Example:
        >>> duration(0.0123), duration(2.5)
        ('12.3 ms', '2.50 s')
    """
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
