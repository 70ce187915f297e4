"""HTML page of a report, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ember_ml._core.files import write_atomically
from ember_ml.mad.report.costs import costs_section
from ember_ml.mad.report.export import as_csv, as_data, as_json
from ember_ml.mad.report.gather import Report, gather
from ember_ml.mad.report.plots import curves_section, difficulty_section
from ember_ml.mad.report.published import agreement_section
from ember_ml.mad.report.runs import configs_section, failed_section, missing_section
from ember_ml.mad.report.scores import heat_section, ranking_section
from ember_ml.mad.report.tuning import tuning_section
from ember_ml.mad.sizes import size_warnings
from ember_ml.mad.store import Store
from ember_ml.training.reports.document import document
from ember_ml.training.reports.markup import text

MAX_VALUES = 4
"""Maximum number of values of a setting that are listed one by one."""
TITLE = "MAD: comparison of architectures"


def write_report(path: str | os.PathLike[str], *, published: bool = True) -> Path:
    """Write `report.html`, `results.json` and `results.csv` into the folder of a sweep.

    The page is self-contained: it loads no other files. The report of an unfinished sweep lists
    the missing and failed runs.

    Args:
        path: Folder of the sweep.
        published: Whether to compare with published scores.

    Returns:
        Path of the page.
    """
    store = Store(path)
    report = gather(store)
    target = store.path / "report.html"
    contents = {
        store.path / "results.json": as_json(report),
        store.path / "results.csv": as_csv(report),
        target: page(report, published=published),
    }
    for file, content in contents.items():
        write_atomically(file, content.encode("utf-8", "replace"))
    return target


def page(report: Report, *, published: bool = True) -> str:
    """Return the HTML of a report.

    Args:
        report: Content of the report.
        published: Whether to compare with published scores.
    """
    sections = [
        ranking_section(report),
        heat_section(report),
        curves_section(report),
        difficulty_section(report),
        tuning_section(report),
        costs_section(report),
        agreement_section(report) if published else "",
        failed_section(report),
        missing_section(report),
        configs_section(report),
    ]
    header = f"<p>{_summary(report)}</p>\n<p>{_settings(report)}</p>\n{_warnings(report)}"
    return document(TITLE, header, sections, as_data(report))


def _summary(report: Report) -> str:
    about, names, tasks = report.about, len(report.architectures), len(report.tasks)
    total = len(report.runs())
    runs = f"{len(report.done)} of {_count(total, 'run')} done"
    runs += f", {len(report.failed)} failed" if report.failed else ""
    return text(
        f"{_count(names, 'architecture')} on {_count(tasks, 'task')} at the scale "
        f"{about.get('scale')}, on the {about.get('backend')} backend with Ember ML "
        f"{about.get('ember_ml')}: {runs}."
    )


def _settings(report: Report) -> str:
    """Return a sentence with the settings of the models and their training."""
    runs = report.runs()
    parts = [
        f"width {_values(run.hidden_size for run in runs)}",
        f"{_values(run.steps for run in runs)} steps",
        f"batch size {_values(run.batch_size for run in runs)}",
        f"learning rate {_values(run.learning_rate for run in runs)}",
        f"weight decay {_values(run.weight_decay for run in runs)}",
        f"seed {_values(run.seed for run in runs)}",
    ]
    return text(f"Settings: {', '.join(parts)}.") if runs else ""


def _values(values: Iterable[float]) -> str:
    distinct = sorted(set(values))
    if len(distinct) > MAX_VALUES:
        return f"{distinct[0]:g} to {distinct[-1]:g}"
    return " / ".join(f"{value:g}" for value in distinct)


def _warnings(report: Report) -> str:
    """Return a box about architectures of unequal size; empty if they are comparable."""
    return "".join(
        f'<p class="warning"><strong>Warning:</strong> {text(sentence)}.</p>'
        for sentence in size_warnings(report.sizes())
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")
