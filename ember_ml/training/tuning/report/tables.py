"""Sections with the trials, the importance of hyperparameters and the failures."""

from __future__ import annotations

from ember_ml.training.reports.markup import cell, section, table, text
from ember_ml.training.tuning.live import show_number
from ember_ml.training.tuning.report.gather import TuningReport
from ember_ml.training.tuning.trial import Trial


def trials_section(report: TuningReport) -> str:
    """Return the section with all completed and pruned trials, best first."""
    pruned = [trial for trial in report.trials if trial.state == "pruned"]
    shown = [*report.ranked, *pruned]
    if not shown:
        return section("trials", "Trials", '<p class="note">No trial has completed yet.</p>')
    names, keys = list(report.tuner.objectives), list(report.tuner.space)
    head = ["Trial", "State", *map(text, names), "Steps", *map(text, keys), "Sampler"]
    rows = (_row(report, trial, names, keys) for trial in shown)
    body = table(head, rows, "numbers", "Trials", words=2)
    note = (
        f"Sorted by {text(report.metric)}, best first ({_direction(report)} is better). The value "
        "of a pruned trial is its last report. Click a heading to sort by it."
    )
    return section("trials", "Trials", body, note)


def _direction(report: TuningReport) -> str:
    return "higher" if report.mode == "max" else "lower"


def _row(report: TuningReport, trial: Trial, names: list[str], keys: list[str]) -> str:
    best = " (best)" if report.ranked and trial is report.ranked[0] else ""
    scores = (_number(trial.scores.get(name)) for name in names)
    steps = _number(trial.reports[-1][0] if trial.reports else None)
    values = (_number(trial.params.get(key)) for key in keys)
    return (
        f'<th scope="row" data-value="{trial.id}">{trial.id}{best}</th>{cell(trial.state)}'
        f"{''.join(scores)}{steps}{''.join(values)}{cell(text(trial.sampler))}"
    )


def _number(value: object) -> str:
    if value is None:
        return cell("\N{EN DASH}", "", "number")
    return cell(text(show_number(value)), value, "number")


def importance_section(report: TuningReport) -> str:
    """Return the section with a bar for each hyperparameter."""
    items = "".join(
        f'<li><span class="rank"></span><span></span><span class="name">{text(key)}</span>'
        f'<span class="bar c0"><i style="width:{100 * share:.1f}%"></i></span>'
        f'<span class="value">{100 * share:.1f} %</span></li>'
        for key, share in report.importance.items()
    )
    body = f'<ol class="ranking">{items}</ol>' if items else ""
    note = (
        "Share of each hyperparameter in the variance of the score that the meta-model predicts "
        "over the whole space. It is an estimate from the completed trials."
    )
    return section("importance", "Importance", body, note)


def failed_section(report: TuningReport) -> str:
    """Return the section with the trials that failed and the reasons."""
    items = "".join(
        f"<li>trial {trial.id}: {text(trial.reason)} <small>{text(_params(trial))}</small></li>"
        for trial in report.trials
        if trial.state == "failed"
    )
    return section("failed", "Failed trials", f"<ul>{items}</ul>" if items else "")


def _params(trial: Trial) -> str:
    return ", ".join(f"{key} {show_number(value)}" for key, value in trial.params.items())
