"""Checks of the data of a self-training run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.data import Dataset
from ember_ml.data.conversion import is_numeric, to_host
from ember_ml.training.pipelines.self_training.examples import CHUNK, WHERE, as_mapping

UNKNOWN = -1
"""True label of an unlabeled example that is not known."""


def check_inputs(data: dict[str, Dataset], *, finite: bool) -> None:
    """Raise an error if inputs differ in shape, or are NaN or infinite.

    Args:
        data: Datasets by the name of the argument; the first one sets the shape.
        finite: Whether NaN and infinite values are errors.
    """
    expected: tuple[int, ...] | None = None
    for name, dataset in data.items():
        for start in range(0, len(dataset), CHUNK):
            inputs = as_mapping(dataset.batch(range(start, min(start + CHUNK, len(dataset)))))[
                "inputs"
            ]
            if not is_numeric(inputs):
                return
            shape = tuple(inputs.shape[1:])
            expected = shape if expected is None else expected
            if shape != expected:
                raise ShapeError(
                    f"{WHERE}: the {name} inputs have the shape {shape}, but the labeled inputs "
                    f"have {expected}"
                )
            if finite:
                _check_finite(name, start, inputs)


def _check_finite(name: str, start: int, inputs: Any) -> None:
    x = convert_to_tensor(to_host(inputs), backend="numpy")
    if not x.dtype.is_floating or bool(ops.all(ops.isfinite(x))):
        return
    rows = ops.all(ops.reshape(ops.isfinite(x), (x.shape[0], -1)), axis=1).tolist()
    raise ArgumentError(
        f"{WHERE}: example {start + rows.index(False)} of the {name} inputs has NaN or infinite "
        "values; remove it or impute them"
    )


def check_labels(name: str, labels: Sequence[Any] | None, classes: int) -> list[int]:
    """Return the class index of each example.

    Args:
        name: Name of the data in errors.
        labels: Class indices.
        classes: Number of classes of the model.
    """
    if labels is None:
        raise ArgumentError(f"{WHERE}: the {name} data has no targets; pass (inputs, targets)")
    for at, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < classes:
            raise ArgumentError(
                f"{WHERE}: target {at} of the {name} data is {label!r:.60}; it must be a class "
                f"index from 0 to {classes - 1}, because the model has {classes} outputs"
            )
    return list(labels)


def check_all_classes(labels: Sequence[int], names: Sequence[Any] | None, classes: int) -> None:
    """Raise an error if a class has no labeled example: it could never be a pseudo-label.

    Args:
        labels: Class indices of the labeled data.
        names: Label of each class, if the targets are labels.
        classes: Number of classes of the model.
    """
    counts = Counter(labels)
    missing = [index for index in range(classes) if not counts[index]]
    if not missing:
        return
    known = [names[index] if names and index < len(names) else index for index in missing]
    raise ArgumentError(
        f"{WHERE}: the labeled data has no example of class "
        f"{', '.join(map(repr, known[:10]))}{', ...' if len(known) > 10 else ''}; the model has "
        f"{classes} outputs: label an example of each class, or use a model with fewer outputs"
    )
