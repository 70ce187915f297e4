"""Values of the record of a round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.training.pipelines.preparation import Prepare
from ember_ml.training.pipelines.self_training.checks import UNKNOWN
from ember_ml.training.pipelines.self_training.data import RunData
from ember_ml.training.pipelines.self_training.predictions import (
    accuracy,
    predict,
    right_among,
    score,
)
from ember_ml.training.pipelines.self_training.pseudo_labels import PseudoLabels
from ember_ml.training.trainer import Trainer


def indices(values: Sequence[int]) -> Tensor:
    """Return integers as a tensor on the host.

    Args:
        values: The integers.
    """
    return convert_to_tensor(list(values), "int64", backend="numpy")


def selection(pseudo: PseudoLabels | None, true_labels: list[int] | None) -> dict[str, Any]:
    """Return how many pseudo-labels there are, of each class, and how many are right.

    Args:
        pseudo: The pseudo-labels; None if there are none.
        true_labels: True class index of each unlabeled example, or -1; None if none is known.
    """
    if pseudo is None:
        return {"selected": 0}
    labels = pseudo.labels()
    classes = int(pseudo.targets.shape[-1])
    counts = ops.bincount(indices(labels), minlength=classes).tolist()
    record: dict[str, Any] = {"selected": len(pseudo), "classes": counts}
    if true_labels is None:
        return record
    chosen = [true_labels[at] for at in pseudo.indices.tolist()]
    pairs = [pair for pair in zip(labels, chosen, strict=True) if pair[1] != UNKNOWN]
    return record | {"known": len(pairs), "correct": sum(a == b for a, b in pairs)}


def validation(
    trainer: Trainer, data: RunData, prepare: Prepare, batch_size: int, *, calibrate: bool
) -> dict[str, float]:
    """Return the scores on the validation data; empty if there is none.

    Args:
        trainer: Trainer of the model.
        data: Data of the run.
        prepare: Preprocessing of a batch.
        batch_size: Number of examples that are computed at once.
        calibrate: Whether to fit the temperature.
    """
    part = data.validation
    if part is None:
        return {}
    logits = predict(trainer, part.inputs.map(prepare, batched=True), batch_size)
    scores = score(logits, part.labels, calibrate=calibrate)
    return {
        "val_accuracy": scores.accuracy,
        "val_loss": scores.loss,
        "ece": scores.ece,
        "temperature": scores.temperature,
    }


def known_accuracy(
    trainer: Trainer, data: RunData, prepare: Prepare, batch_size: int
) -> dict[str, float]:
    """Return the accuracies on the test data and on the unlabeled data with known labels.

    Args:
        trainer: Trainer of the model.
        data: Data of the run.
        prepare: Preprocessing of a batch.
        batch_size: Number of examples that are computed at once.
    """
    record = {}
    if data.test is not None:
        logits = predict(trainer, data.test.inputs.map(prepare, batched=True), batch_size)
        record["test_accuracy"] = accuracy(logits, data.test.labels)
    if data.true_labels is not None and any(label != UNKNOWN for label in data.true_labels):
        known = sum(label != UNKNOWN for label in data.true_labels)
        logits = predict(trainer, data.unlabeled.map(prepare, batched=True), batch_size)
        record["pool_accuracy"] = right_among(logits, data.true_labels) / known
    return record
