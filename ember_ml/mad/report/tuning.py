"""Section with the tuned hyperparameters of each architecture."""

from __future__ import annotations

from ember_ml.mad.report.export import NOTHING, percent
from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.titles import task_title
from ember_ml.mad.tuning import SPACE, Tuned
from ember_ml.training.reports.markup import cell, name_cell, section, table, text

HEAD = ("Architecture", "Task", "Learning rate", "Weight decay", "Validation", "Trials", "Failed")


def tuning_section(report: Report) -> str:
    """Return the section with the hyperparameters of each architecture and the budget."""
    if not report.tuned:
        return ""
    known = [each for each in report.tuned if each.architecture in report.architectures]
    rows = (_row(report, each) for each in known)
    body = table(HEAD, rows, "numbers", "Tuned hyperparameters", words=2)
    budget = report.about["tuning"]["budget"]
    ranges = " and ".join(f"{text(key)} {text(entry)}" for key, entry in SPACE.items())
    note = (
        f"Each architecture has its own learning rate and weight decay on each task: the best of "
        f"{budget} trials by validation accuracy. The budget is equal, and all architectures try "
        f"the same random values: {ranges}. The test split is not used."
    )
    return section("tuning", "Tuning", body, note)


def _row(report: Report, tuned: Tuned) -> str:
    place = report.architectures.index(tuned.architecture)
    best, rates = tuned.best, tuned.rates()
    accuracy = None if best is None else best.scores["validation_accuracy"]
    values = [
        _number(None if rates is None else rates.learning_rate, "{:.2e}"),
        _number(None if rates is None else rates.weight_decay, "{:.3f}"),
        cell(NOTHING if accuracy is None else f"{percent(accuracy)} %", accuracy, "number"),
        _number(tuned.trials, "{}"),
        _number(tuned.failed, "{}"),
    ]
    heading = name_cell(tuned.architecture, place)
    return heading + cell(task_title(tuned.task), tuned.task) + "".join(values)


def _number(value: float | None, form: str) -> str:
    return cell(NOTHING if value is None else form.format(value), value, "number")
