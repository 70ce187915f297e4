"""Section with parameter counts, state sizes and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.titles import task_title
from ember_ml.mad.run import Result
from ember_ml.mad.sizes import by_setting, spread
from ember_ml.training.reports.markup import cell, name_cell, section, table, text

HEAD = ("Parameters", "State", "State per token", "Time per step", "Steps")


def costs_section(report: Report) -> str:
    """Return the section with sizes and times: ranges over the tasks, and each task."""
    if not report.cells:
        return ""
    names = [name for name in report.architectures if report.chosen(name)]
    rows = (_row(report, name, None) for name in names)
    summary = table(["Architecture", *HEAD], rows, "numbers", "Sizes and times")
    note = (
        "Minimum and maximum over the tasks, for the selected runs. State is the number of values "
        "a model keeps to continue a sequence; the long filters of Hyena count by their order. "
        f"Attention without a window also stores values for every token. {_differences(report)}"
        "Times are training time, measured with the parallel runs of the sweep."
    )
    return section("costs", "Sizes and times", summary + _by_task(report, names), note)


def _differences(report: Report) -> str:
    """Return a sentence about the largest differences in size on one task."""
    parts, groups = [], by_setting(report.sizes())
    for what, words in (("parameters", "parameters"), ("state", "fixed states")):
        ratios = [pair.ratio for group in groups if (pair := spread(group, what))]
        if ratios:
            parts.append(f"{words} by a factor of up to {max(ratios):.2f}")
    joined = " and in ".join(parts)
    return f"On the same task, the architectures differ in {joined}. " if parts else ""


def _by_task(report: Report, names: Sequence[str]) -> str:
    pairs = [(name, task) for name in names for task in report.tasks if report.chosen(name, task)]
    rows = (_row(report, name, task) for name, task in pairs)
    head = ["Architecture", "Task", *HEAD]
    body = table(head, rows, "numbers", "Sizes and times by task", words=2)
    return f"<details><summary>By task</summary>{body}</details>"


def _row(report: Report, name: str, task: str | None) -> str:
    results = [each.result for each in report.chosen(name, task)]
    cells = [
        _range(results, lambda result: result.parameters, count),
        _range(results, lambda result: result.state, count),
        _range(results, lambda result: result.state_per_token, count),
        _range(results, lambda result: result.seconds_per_step, duration),
        _range(results, lambda result: result.steps, count),
    ]
    middle = "" if task is None else cell(task_title(task), task)
    return name_cell(name, report.architectures.index(name)) + middle + "".join(cells)


def _range(
    results: Sequence[Result], take: Callable[[Result], float], show: Callable[[float], str]
) -> str:
    values = [take(result) for result in results]
    low, high = show(min(values)), show(max(values))
    shown = low if low == high else f"{low} to {high}"
    return cell(f'<span class="range">{text(shown)}</span>', max(values), "number")


def count(value: float) -> str:
    """Return a count with a comma after each three digits."""
    return f"{value:,.0f}"


def duration(seconds: float) -> str:
    """Return a duration in milliseconds or seconds.

    Example:
        >>> duration(0.0123), duration(2.5)
        ('12.3 ms', '2.50 s')
    """
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
