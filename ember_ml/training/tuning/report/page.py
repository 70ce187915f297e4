"""HTML page of a search, in one file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

from ember_ml._core.files import write_atomically
from ember_ml.training.reports.document import document
from ember_ml.training.reports.markup import section, text
from ember_ml.training.tuning.folder import TuningFolder
from ember_ml.training.tuning.report.coordinates import coordinates_section
from ember_ml.training.tuning.report.front import front_section
from ember_ml.training.tuning.report.gather import TuningReport, gather
from ember_ml.training.tuning.report.progress import progress_section
from ember_ml.training.tuning.report.tables import (
    failed_section,
    importance_section,
    trials_section,
)

TITLE = "Search for hyperparameters"
MAX_BEST = 3
"""Maximum number of configs that are shown in full."""


def write_report(path: str | os.PathLike[str]) -> Path:
    """Write `report.html` and `results.json` into the folder of a search.

    The page is self-contained: it loads no other files.

    Args:
        path: Folder of the search, finished or not.

    Returns:
        Path of the page.
    """
    folder = TuningFolder(path)
    report = gather(folder)
    target = folder.path / "report.html"
    results = json.dumps(as_data(report), indent=2) + "\n"
    write_atomically(folder.path / "results.json", results.encode())
    write_atomically(target, page(report).encode("utf-8", "replace"))
    return target


def page(report: TuningReport) -> str:
    """Return the HTML of a report.

    Args:
        report: Content of the report.
    """
    sections = [
        best_section(report),
        trials_section(report),
        coordinates_section(report),
        importance_section(report),
        front_section(report),
        progress_section(report),
        failed_section(report),
    ]
    return document(TITLE, f"<p>{_summary(report)}</p>\n", sections, as_data(report))


def _summary(report: TuningReport) -> str:
    counts = {
        state: sum(trial.state == state for trial in report.trials)
        for state in ("done", "pruned", "failed", "running")
    }
    words = ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "none yet"
    about = report.about
    return text(
        f"{about.get('task')}: {len(report.trials)} of {about.get('budget')} trials ({words}) over "
        f"{len(report.tuner.space)} hyperparameters, on the {about.get('backend')} backend with "
        f"Ember ML {about.get('ember_ml')}. The score is {report.metric} ({report.mode})."
    )


def best_section(report: TuningReport) -> str:
    """Return the section with the configs of the best trials."""
    parts = []
    for place, trial in enumerate(report.ranked[:MAX_BEST]):
        config = report.tuner.space.apply(report.about["config"], trial.params)
        scores = ", ".join(f"{name} {value:.4g}" for name, value in trial.scores.items())
        shown = " open" if place == 0 else ""
        parts.append(
            f"<details{shown}><summary>Trial {trial.id} <small>{text(scores)}</small></summary>"
            f"<pre>{text(yaml.safe_dump(config, sort_keys=False))}</pre></details>"
        )
    note = "The first one is also in best.yaml."
    return section("best", "Best configs", "".join(parts), note)


def as_data(report: TuningReport) -> dict[str, Any]:
    """Return the results as plain data.

    Args:
        report: Content of the report.
    """
    names = ("id", "state", "params", "scores", "reports", "sampler", "seed", "reason")
    return {
        "search": report.about,
        "best": report.ranked[0].id if report.ranked else None,
        "front": [trial.id for trial in report.tuner.front],
        "importance": report.importance,
        "trials": [{name: getattr(trial, name) for name in names} for trial in report.trials],
    }
