"""Learning curves, and accuracies over difficulty."""

from __future__ import annotations

from ember_ml.mad.report.difficulty import Points, curves, variables
from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.markup import legend, section, text
from ember_ml.mad.report.plot import Axis, Line, plot, steps_axis, values_axis

WORDS = {
    "vocab_size": "tokens in the vocabulary",
    "seq_len": "length of a sequence",
    "num_train": "training examples",
    "frac_noise": "share of noise",
    "num_tokens_to_copy": "tokens to copy",
}


def curves_section(report: Report) -> str:
    """A plot for each task."""
    figures = []
    for task in report.tasks:
        lines = curves(report, task)
        steps = [step for points in lines.values() for step, _ in points]
        if steps:
            axis = steps_axis("training step", max(steps))
            figures.append(_figure(report, task, f"Learning curves of {task}", axis, lines))
    note = (
        "Accuracy on the validation split while training, over all targets. A line that ends early "
        "has learned its task. Press a name to bring its lines to the front."
    )
    body = legend(report.architectures) + _all(figures) if figures else ""
    return section("curves", "Learning curves", body, note)


def difficulty_section(report: Report) -> str:
    """A plot for each task and what makes it harder, where a sweep has several sizes."""
    figures = []
    for variable in variables(report):
        name = WORDS.get(variable.name, variable.name)
        values = [value for points in variable.lines.values() for value, _ in points]
        title = f"{variable.task} over {name}"
        axis = values_axis(name, values)
        figures.append(_figure(report, variable.task, title, axis, variable.lines))
    note = "Test accuracy over all targets, as one size of a task changes and the others stay."
    body = legend(report.architectures) + _all(figures) if figures else ""
    return section("difficulty", "Difficulty", body, note)


def _all(figures: list[str]) -> str:
    return f'<div class="plots">{"".join(figures)}</div>'


def _figure(report: Report, caption: str, title: str, axis: Axis, lines: dict[str, Points]) -> str:
    drawn = [Line(name, report.architectures.index(name), points) for name, points in lines.items()]
    return f"<figure><figcaption>{text(caption)}</figcaption>{plot(title, axis, drawn)}</figure>"
