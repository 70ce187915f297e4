"""The numbers of a report as plain data."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

from ember_ml.mad.report.gather import Report
from ember_ml.mad.scores import AVERAGES, Cell, Score, ranking, task_of
from ember_ml.mad.store import Done, run_name

COLUMNS = (
    "accuracy",
    "macro_accuracy",
    "loss",
    "validation_accuracy",
    "validation_loss",
    "steps",
    "seconds",
    "seconds_per_step",
    "parameters",
    "state",
    "state_per_token",
)

NOTHING = "\N{EN DASH}"
"""In place of a number that is not there."""


def as_data(report: Report) -> dict[str, Any]:
    """Everything but the curves, which are beside each run's configuration."""
    chosen = {run_name(each.run) for cell in report.cells.values() for each in cell.chosen}
    data: dict[str, Any] = {
        "sweep": report.about,
        "counts": {
            "done": len(report.done),
            "failed": len(report.failed),
            "missing": len(report.missing),
        },
        "ranking": {average: _ranking(report, average) for average in AVERAGES},
        "scores": [_cell(cell) for cell in report.cells.values()],
        "runs": [_run(each, chosen) for each in report.done],
        "failed": [{"config": run.to_dict(), "error": error} for run, error in report.failed],
        "missing": [run.to_dict() for run in report.missing],
    }
    return {key: _finite(value) for key, value in data.items()}


def _ranking(report: Report, average: str) -> list[dict[str, Any]]:
    return [
        {"architecture": name, **score._asdict()}
        for name, score in ranking(report.cells.values(), average)
    ]


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "architecture": cell.architecture,
        "task": cell.task,
        "micro": cell.accuracy._asdict(),
        "macro": cell.macro_accuracy._asdict(),
        "runs": [run_name(each.run) for each in cell.chosen],
    }


def _run(each: Done, chosen: set[str]) -> dict[str, Any]:
    name = run_name(each.run)
    result = {column: getattr(each.result, column) for column in COLUMNS}
    return {"name": name, "chosen": name in chosen, "config": each.run.to_dict(), "result": result}


def _finite(data: Any) -> Any:
    """The same without the numbers that JSON has no word for."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data


def as_json(report: Report) -> str:
    """The text of `results.json`."""
    return json.dumps(as_data(report), indent=1, allow_nan=False) + "\n"


def as_csv(report: Report) -> str:
    """The text of `results.csv`: a line for each run, done or failed; curves are left out."""
    chosen = {run_name(each.run) for cell in report.cells.values() for each in cell.chosen}
    rows = [_row(each, chosen) for each in report.done]
    rows += [{**_about(run), "status": "failed"} for run, _ in report.failed]
    rows += [{**_about(run), "status": "missing"} for run in report.missing]
    fields = dict.fromkeys(key for row in rows for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(each: Done, chosen: set[str]) -> dict[str, Any]:
    found = {**_about(each.run), "status": "done", "chosen": run_name(each.run) in chosen}
    return found | {column: getattr(each.result, column) for column in COLUMNS}


def _about(run: Any) -> dict[str, Any]:
    plain = run.to_dict()
    task = plain.pop("task")
    task.pop("type")
    layers = plain["layers"]
    plain["layers"] = layers if isinstance(layers, str) else json.dumps(layers)
    sizes = {f"task.{key}": value for key, value in task.items()}
    return {"name": run_name(run), "task": task_of(run), **plain, **sizes}


def show(score: Score | None) -> str:
    """A score in percent, with its confidence interval if it has one.

    Example:
        >>> show(Score(0.934, 0.0123, 3))
        '93.4 ± 1.2'
    """
    if score is None:
        return NOTHING
    spread = "" if score.interval is None else f" ± {percent(score.interval)}"
    return percent(score.mean) + spread


def percent(value: float) -> str:
    """A share of one in percent, with one decimal."""
    return f"{100 * value:.1f}" if math.isfinite(value) else NOTHING
