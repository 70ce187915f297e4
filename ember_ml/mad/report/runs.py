"""Sections with failed runs, missing runs and the configs of all runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.report.gather import Report
from ember_ml.mad.scales import task_names
from ember_ml.mad.scores import task_of
from ember_ml.mad.store import run_name
from ember_ml.training.reports.markup import dot, section, text

MAX_EXPANDED = 4
"""Maximum number of errors that are expanded when the page opens."""


def failed_section(report: Report) -> str:
    """Return the section with the runs that failed and their errors."""
    shown = " open" if len(report.failed) <= MAX_EXPANDED else ""
    items = "".join(
        f"<details{shown}><summary>{_title(run)}</summary><pre>{text(error)}</pre></details>"
        for run, error in report.failed
    )
    note = "They count as not done. Running the sweep again retries them."
    return section("failed", "Failed runs", items, note)


def _title(run: RunConfig) -> str:
    about = f"lr {run.learning_rate:g}, wd {run.weight_decay:g}, seed {run.seed}"
    return f"{text(run.architecture)} on {text(task_of(run))} <small>{about}</small>"


def missing_section(report: Report) -> str:
    """Return the section with the number of missing runs of each architecture and task."""
    counts = Counter((run.architecture, task_of(run)) for run in report.missing)
    items = [
        f"<li>{text(name)} on {text(task)}: {_num_runs(count)}</li>"
        for (name, task), count in sorted(counts.items())
    ]
    others = [task for task in task_names() if task not in report.tasks]
    if others and report.tasks and items:
        items.append(f"<li>No runs of {text(', '.join(others))}</li>")
    body = f"<ul>{''.join(items)}</ul>" if items else ""
    return section("missing", "Not done yet", body, "Running the sweep again continues with them.")


def _num_runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def configs_section(report: Report) -> str:
    """Return the section with the layers of each architecture and the config of each run."""
    parts = []
    for place, name in enumerate(report.architectures):
        runs = [run for run in report.runs() if run.architecture == name]
        patterns = "".join(f"<code>{text(each)}</code>" for each in _patterns(runs))
        inner = "".join(_config(run) for run in runs)
        parts.append(
            f"<details><summary>{dot(place)}{text(name)} {patterns}"
            f"<small>{_num_runs(len(runs))}</small></summary>{inner}</details>"
        )
    return section("configs", "Configs of all runs", "".join(parts))


def _patterns(runs: Sequence[RunConfig]) -> list[str]:
    layers = [run.to_dict()["layers"] for run in runs]
    texts = [each if isinstance(each, str) else json.dumps(each) for each in layers]
    return list(dict.fromkeys(texts))


def _config(run: RunConfig) -> str:
    return (
        f"<details><summary>{text(run_name(run))}</summary>"
        f"<pre>{text(run.to_yaml())}</pre></details>"
    )
