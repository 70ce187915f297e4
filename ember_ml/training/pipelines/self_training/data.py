"""Data of a self-training run: examples, labels and what is known about the unlabeled data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ember_ml.data import ConcatDataset, Dataset
from ember_ml.nn.pipeline import ClassLabels
from ember_ml.training.pipelines.fitted_parts import FittedParts
from ember_ml.training.pipelines.self_training import checks
from ember_ml.training.pipelines.self_training.checks import UNKNOWN
from ember_ml.training.pipelines.self_training.examples import Inputs, Labeled, column


@dataclass(frozen=True)
class Part:
    """Inputs and class indices of data with labels."""

    inputs: Dataset
    labels: list[int]


@dataclass(frozen=True)
class RunData:
    """Data of a run, checked and with class indices.

    Args:
        labeled: Labeled examples, as dicts with targets and weights.
        labels: Class index of each labeled example.
        unlabeled: Inputs of the unlabeled examples.
        true_labels: True class index of each unlabeled example, or -1; None if none is known.
        validation: Validation data; None if there is none.
        test: Test data; None if there is none.
    """

    labeled: Labeled
    labels: list[int]
    unlabeled: Dataset
    true_labels: list[int] | None
    validation: Part | None
    test: Part | None


def targets_are_text(labeled: Dataset) -> bool:
    """Return whether the targets of labeled data are strings.

    Args:
        labeled: The labeled data.
    """
    targets = column("labeled", labeled, "targets")
    return targets is not None and any(isinstance(target, str) for target in targets[:1])


def all_inputs(*parts: Dataset) -> Dataset:
    """Return the inputs of several datasets, for preprocessing that is fitted.

    Args:
        *parts: Datasets with examples of the same form.
    """
    return ConcatDataset([Inputs(part) for part in parts])


def run_data(parts: FittedParts, data: dict[str, Dataset | None], classes: int) -> RunData:
    """Return the data of a run; raise an error if labels are missing or do not fit.

    Args:
        parts: Fitted encoding of the targets.
        data: Datasets by the name of the argument of `fit`.
        classes: Number of outputs of the model.
    """
    labeled, unlabeled = data["labeled"], data["unlabeled"]
    assert labeled is not None
    assert unlabeled is not None
    labels = _labels(parts, "labeled", labeled, classes)
    checks.check_all_classes(labels, parts.labels, classes)
    weights = column("labeled", labeled, "sample_weight") or [1.0] * len(labels)
    weights = [float(weight) for weight in weights]
    held_out = [
        None if part is None else Part(Inputs(part), _labels(parts, name, part, classes))
        for name, part in data.items()
        if name in ("validation", "test")
    ]
    return RunData(
        Labeled(labeled, labels, weights),
        labels,
        Inputs(unlabeled),
        _true_labels(parts, unlabeled, classes),
        *held_out,
    )


def _labels(parts: FittedParts, name: str, dataset: Dataset, classes: int) -> list[int]:
    targets = column(name, dataset, "targets")
    return checks.check_labels(name, _encoded(parts, targets), classes)


def _encoded(parts: FittedParts, targets: Sequence[Any] | None) -> list[Any] | None:
    if targets is None or not isinstance(parts.target, ClassLabels):
        return None if targets is None else list(targets)
    encoded: list[Any] = parts.target.encode(list(targets)).tolist()
    return encoded


def _true_labels(parts: FittedParts, unlabeled: Dataset, classes: int) -> list[int] | None:
    """Return the class indices that are known, with -1 for the others."""
    targets = column("unlabeled", unlabeled, "targets")
    if targets is None:
        return None
    known = [at for at, label in enumerate(targets) if _is_known(label)]
    encoded = _encoded(parts, [targets[at] for at in known]) if known else []
    labels = [UNKNOWN] * len(targets)
    for at, label in zip(known, checks.check_labels("unlabeled", encoded, classes), strict=True):
        labels[at] = label
    return labels


def _is_known(label: Any) -> bool:
    return label not in (None, "") and not (isinstance(label, (int, float)) and label < 0)
