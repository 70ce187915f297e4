"""Results of a report as JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math

from ember_ml.configs.mad import RunConfig
from ember_ml.mad.compare import standings
from ember_ml.mad.report.gather import Report
from ember_ml.mad.run import Result
from ember_ml.mad.scores import AVERAGES, Cell, Score, task_of
from ember_ml.mad.sizes import size_warnings
from ember_ml.mad.store import EXAMPLE_COLUMNS, Done, run_name
from ember_ml.mad.tuning import Tuned

COLUMNS = tuple(name for name in Result._fields if name not in ("curve", *EXAMPLE_COLUMNS))
NOTHING = "\N{EN DASH}"
"""Shown in place of a missing number."""


def as_data(report: Report) -> dict[str, object]:
    """Return the results as plain data, without the curves."""
    chosen = _chosen_names(report)
    data: dict[str, object] = {
        "sweep": report.about,
        "warnings": size_warnings(report.sizes()),
        "counts": {
            "done": len(report.done),
            "failed": len(report.failed),
            "missing": len(report.missing),
        },
        "ranking": {average: _ranking(report, average) for average in AVERAGES},
        "scores": [_cell(cell) for cell in report.cells.values()],
        "tuning": [_tuned(each) for each in report.tuned],
        "runs": [_run(each, chosen) for each in report.done],
        "failed": [{"config": run.to_dict(), "error": error} for run, error in report.failed],
        "missing": [run.to_dict() for run in report.missing],
    }
    return {key: _without_nan(value) for key, value in data.items()}


def _chosen_names(report: Report) -> set[str]:
    return {run_name(each.run) for each in report.chosen()}


def _ranking(report: Report, average: str) -> list[dict[str, object]]:
    return [
        {
            "architecture": each.architecture,
            "rank": [each.first, each.last],
            "tied_with": list(each.tied_with),
            **each.score._asdict(),
        }
        for each in standings(report.cells.values(), average)
    ]


def _tuned(tuned: Tuned) -> dict[str, object]:
    best = tuned.best
    return {
        "architecture": tuned.architecture,
        "task": tuned.task,
        "trials": tuned.trials,
        "failed": tuned.failed,
        **({} if best is None else {**best.params, **best.scores}),
    }


def _cell(cell: Cell) -> dict[str, object]:
    return {
        "architecture": cell.architecture,
        "task": cell.task,
        "micro": cell.accuracy._asdict(),
        "macro": cell.macro_accuracy._asdict(),
        "runs": [run_name(each.run) for each in cell.chosen],
    }


def _run(each: Done, chosen: set[str]) -> dict[str, object]:
    name = run_name(each.run)
    result = {column: getattr(each.result, column) for column in COLUMNS}
    return {"name": name, "chosen": name in chosen, "config": each.run.to_dict(), "result": result}


def _without_nan(data: object) -> object:
    """Replace NaN and infinity, which JSON lacks, by None."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _without_nan(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_without_nan(value) for value in data]
    return data


def as_json(report: Report) -> str:
    """Return the content of `results.json`."""
    return json.dumps(as_data(report), indent=1, allow_nan=False) + "\n"


def as_csv(report: Report) -> str:
    """Return the content of `results.csv`: one line per run, without the curves."""
    chosen = _chosen_names(report)
    rows = [_row(each, chosen) for each in report.done]
    rows += [{**_config_columns(run), "status": "failed"} for run, _ in report.failed]
    rows += [{**_config_columns(run), "status": "missing"} for run in report.missing]
    fields = dict.fromkeys(key for row in rows for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _row(each: Done, chosen: set[str]) -> dict[str, object]:
    row = {**_config_columns(each.run), "status": "done", "chosen": run_name(each.run) in chosen}
    return row | {column: getattr(each.result, column) for column in COLUMNS}


def _config_columns(run: RunConfig) -> dict[str, object]:
    fields = run.to_dict()
    task = fields.pop("task")
    task.pop("type")
    layers = fields["layers"]
    fields["layers"] = layers if isinstance(layers, str) else json.dumps(layers)
    sizes = {f"task.{key}": value for key, value in task.items()}
    return {"name": run_name(run), "task": task_of(run), **fields, **sizes}


def show(score: Score | None) -> str:
    """Return a score and its confidence interval in percent.

    Example:
        >>> show(Score(0.934, (0.921, 0.94), 3)).partition(" (")[0]
        '93.4 %'
    """
    if score is None:
        return NOTHING
    seeds = "1 seed" if score.seeds == 1 else f"{score.seeds} seeds"
    return f"{percent(score.mean)} % ({show_interval(score)} %, {seeds})"


def show_interval(score: Score) -> str:
    """Return the bounds of a confidence interval in percent."""
    low, high = score.interval
    return f"{percent(low)}\N{EN DASH}{percent(high)}"


def percent(value: float) -> str:
    """Return a fraction in percent, with one decimal."""
    return f"{100 * value:.1f}" if math.isfinite(value) else NOTHING
