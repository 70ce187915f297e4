"""Scores that others published, and how far a sweep agrees with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ember_ml.configs.patterns import entry_of, items_of
from ember_ml.mad.report.gather import Report
from ember_ml.mad.scores import chance, spearman

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
"""In percent, by architecture and task; accuracies are means over the classes."""
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
FEWEST = 3
"""Below so many architectures, an order says nothing."""


class Agreement(NamedTuple):
    """The order of architectures on a task, here and published."""

    task: str
    architectures: int
    spearman: float
    """1 if the orders are the same, -1 if opposite; not a number if all are equal."""
    chance: float
    """How often an order drawn by lot agrees as well."""


def counterpart(layers: Any) -> str | None:
    """The published architecture with the same sequence mixer, if it has one kind alone.

    Example:
        >>> counterpart("(mh-attention+swiglu)x2")
        'Transformer'
    """
    mixers = {name for name in map(_name, items_of(layers)) if name and _mixes_time(name)}
    return COUNTERPARTS.get(mixers.pop()) if len(mixers) == 1 else None


def _name(item: Any) -> str | None:
    if isinstance(item, Mapping):
        item = item.get("type")
    return entry_of(item).name if isinstance(item, str) else getattr(item, "component", None)


def _mixes_time(name: str) -> bool:
    """Whether a layer is no channel mixer; blocks count as mixers of both."""
    module = str(getattr(entry_of(name).target, "__module__", ""))
    return "channel_mixing" not in module


def counterparts(report: Report) -> dict[str, str]:
    """The published counterpart of each architecture that has one."""
    found = {run.architecture: counterpart(run.layers) for run in report.runs()}
    return {name: found[name] for name in report.architectures if found.get(name)}  # type: ignore[misc]


def agreements(report: Report) -> list[Agreement]:
    """Of each task that enough architectures with a counterpart have results of."""
    pairs = counterparts(report)
    found = []
    for task in report.tasks:
        names = [name for name in pairs if (name, task) in report.cells]
        if task in TASKS and len({pairs[name] for name in names}) >= FEWEST:
            here = [report.cells[name, task].macro_accuracy.mean for name in names]
            there = [PUBLISHED[pairs[name]][task] for name in names]
            how = spearman(here, there), chance(here, there)
            found.append(Agreement(task, len(names), *how))
    return found
