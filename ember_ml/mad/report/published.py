"""Comparison with published scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ember_ml.configs.patterns import LayersLike, entry_of, items_of
from ember_ml.mad.report.export import NOTHING, percent
from ember_ml.mad.report.gather import Report
from ember_ml.mad.report.titles import task_title
from ember_ml.mad.scores import chance, spearman
from ember_ml.training.reports.markup import cell, name_cell, section, table, text

TASKS = (
    "compression",
    "fuzzy-in-context-recall",
    "in-context-recall",
    "memorization",
    "noisy-in-context-recall",
    "selective-copying",
)
PUBLISHED = {
    name: dict(zip(TASKS, scores, strict=True))
    for name, scores in {
        "Transformer": (51.6, 29.8, 94.1, 85.2, 86.8, 99.6),
        "Hyena": (45.2, 7.9, 81.7, 89.5, 78.8, 93.1),
        "MH-Hyena": (44.8, 14.4, 99.0, 89.4, 98.6, 93.0),
        "Mamba": (52.7, 6.7, 90.4, 89.5, 90.1, 86.3),
        "GLA": (38.8, 6.9, 80.8, 63.3, 81.6, 88.6),
        "DeltaNet": (42.2, 35.7, 100.0, 52.8, 100.0, 100.0),
    }.items()
}
"""Published accuracies in percent, averaged over classes, by architecture and task."""
SOURCE = (
    "S. Yang et al., Parallelizing Linear Transformers with the Delta Rule over Sequence Length "
    "(2024, arXiv 2406.06484), which compares DeltaNet with scores of M. Poli et al., Mechanistic "
    "Design and Scaling of Hybrid Architectures (2024, arXiv 2403.17844)"
)
"""Publications of the scores."""
COUNTERPARTS = {
    "layers/attention": "Transformer",
    "layers/mh_attention": "Transformer",
    "layers/hyena": "Hyena",
    "layers/multi_head_hyena": "MH-Hyena",
    "layers/mamba": "Mamba",
    "layers/gated_linear_attention": "GLA",
    "layers/mh_gated_linear_attention": "GLA",
    "layers/delta_net": "DeltaNet",
}
"""Published architecture with the same sequence mixer, by layer."""
MIN_ARCHITECTURES = 3
"""Minimum number of architectures for a rank correlation."""
NOTE = (
    "Spearman's rank correlation between the order of the architectures here (accuracy averaged "
    "over classes, as published) and in the published scores: 1 is the same order, 0 no "
    "correlation, &minus;1 the opposite order. By chance is the fraction of random orders that "
    "agree at least as well; with few architectures, a correlation of 1 means little. The "
    "published scores come from other sizes, budgets and code, and differ between publications, "
    f"so compare the order, not the values. Source of the published scores: {SOURCE}."
)


class Agreement(NamedTuple):
    """Agreement of the order of architectures on a task with the published order."""

    task: str
    architectures: int
    spearman: float
    """1 for the same order, -1 for the opposite one, NaN if all scores are equal."""
    chance: float
    """Fraction of random orders that agree at least as well."""


def counterpart(layers: LayersLike) -> str | None:
    """Return the published architecture with the same sequence mixer.

    Returns:
        The name; None if the layers have several kinds of sequence mixers, or an unpublished one.

    Example:
        >>> counterpart("(mh-attention+swiglu)x2")
        'Transformer'
    """
    mixers = {name for name in map(_layer_name, items_of(layers)) if name and _mixes_tokens(name)}
    return COUNTERPARTS.get(mixers.pop()) if len(mixers) == 1 else None


def _layer_name(item: object) -> str | None:
    if isinstance(item, Mapping):
        item = item.get("type")
    return entry_of(item).name if isinstance(item, str) else getattr(item, "component", None)


def _mixes_tokens(name: str) -> bool:
    """Return whether a layer is not a channel mixer; blocks count as sequence mixers."""
    return "channel_mixing" not in entry_of(name).target.__module__


def counterparts(report: Report) -> dict[str, str]:
    """Return the published counterpart of each architecture that has one."""
    names = {run.architecture: counterpart(run.layers) for run in report.runs()}
    return {name: there for name in report.architectures if (there := names.get(name))}


def agreements(report: Report) -> list[Agreement]:
    """Return the agreement on each task that enough architectures have results of."""
    pairs = counterparts(report)
    rows = []
    for task in report.tasks:
        names = [name for name in pairs if (name, task) in report.cells]
        if task in TASKS and len({pairs[name] for name in names}) >= MIN_ARCHITECTURES:
            here = [report.cells[name, task].macro_accuracy.mean for name in names]
            there = [PUBLISHED[pairs[name]][task] for name in names]
            rows.append(Agreement(task, len(names), spearman(here, there), chance(here, there)))
    return rows


def agreement_section(report: Report) -> str:
    """Return the section with rank correlations and the scores next to the published ones."""
    rows = agreements(report)
    if not rows:
        return ""
    head = ["Task", "Architectures", "Spearman", "By chance"]
    body = table(head, map(_row, rows), "numbers", "Agreement with the published scores")
    title = "Agreement with published scores"
    return section("agreement", title, body + _score_table(report), NOTE)


def _row(agreement: Agreement) -> str:
    value = NOTHING if agreement.spearman != agreement.spearman else f"{agreement.spearman:.2f}"
    share = NOTHING if agreement.chance != agreement.chance else f"{100 * agreement.chance:.1f} %"
    return (
        f'<th scope="row">{task_title(agreement.task)}</th>'
        + cell(str(agreement.architectures), agreement.architectures, "number")
        + cell(text(value).replace("-", "&minus;"), value, "number")
        + cell(share, agreement.chance, "number")
    )


def _score_table(report: Report) -> str:
    tasks = [task for task in report.tasks if task in TASKS]
    rows = []
    for name, there in counterparts(report).items():
        cells = "".join(_pair(report, name, there, task) for task in tasks)
        head = name_cell(name, report.architectures.index(name))
        rows.append(head + cell(text(there)) + cells)
    titles = ["Architecture", "Published as", *map(task_title, tasks)]
    body = table(titles, rows, "numbers", "Scores here and published", words=2)
    return f"<details><summary>Scores here / published</summary>{body}</details>"


def _pair(report: Report, name: str, there: str, task: str) -> str:
    score = report.score(name, task, "macro")
    here = NOTHING if score is None else percent(score.mean)
    shown = f"{here} <small>/ {PUBLISHED[there][task]:.1f}</small>"
    return cell(shown, "" if score is None else score.mean, "number")
