"""Predictions of a model and their quality, computed on the host, equal on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.data import Dataset
from ember_ml.data.conversion import to_host
from ember_ml.training.calibration import expected_calibration_error, fit_temperature
from ember_ml.training.trainer import Trainer


def host(x: TensorLike) -> Tensor:
    """Return values as a float64 tensor of the NumPy backend.

    Args:
        x: Tensor or array.
    """
    return convert_to_tensor(to_host(x), "float64", backend="numpy")


def softmax(logits: Tensor, temperature: float) -> Tensor:
    """Return the probabilities of logits at a temperature.

    Args:
        logits: Logits of shape (..., classes).
        temperature: Divisor of the logits.
    """
    return ops.softmax(logits / temperature, axis=-1)


def predict(trainer: Trainer, dataset: Dataset, batch_size: int) -> Tensor:
    """Return the logits of all examples on the host, with averaged weights if there are any.

    Args:
        trainer: Trainer of the model.
        dataset: Prepared examples.
        batch_size: Number of examples that are computed at once.
    """
    logits = trainer.predict(dataset, batch_size=batch_size)
    shape = getattr(logits, "shape", None)
    if shape is None or len(shape) != 2:
        raise ShapeError(
            "SelfTrainingPipeline: the model must return logits of shape (examples, classes), not "
            f"{type(logits).__name__ if shape is None else shape}"
        )
    return host(logits)


class Scores(NamedTuple):
    """Quality of predictions on labeled data."""

    accuracy: float
    loss: float
    """Cross-entropy at the temperature."""
    ece: float
    """Expected calibration error at the temperature."""
    temperature: float


def score(logits: Tensor, labels: Sequence[int], *, calibrate: bool) -> Scores:
    """Return the quality of predictions.

    Args:
        logits: Logits of shape (examples, classes).
        labels: Class index of each example.
        calibrate: Whether to fit the temperature; otherwise it is 1.
    """
    y = convert_to_tensor(list(labels), "int64", backend="numpy")
    temperature = fit_temperature(logits, y) if calibrate else 1.0
    log_probabilities = ops.log_softmax(logits / temperature, axis=-1)
    right = ops.take_along_axis(log_probabilities, ops.expand_dims(y, -1), axis=-1)
    ece = expected_calibration_error(ops.exp(log_probabilities), y)
    return Scores(accuracy(logits, labels), -float(ops.mean(right)), ece, temperature)


def accuracy(scores: Tensor, labels: Sequence[int]) -> float:
    """Return the share of examples whose largest score is that of their class.

    Args:
        scores: Scores of shape (examples, classes).
        labels: Class index of each example.
    """
    return right_among(scores, labels) / len(labels)


def right_among(scores: Tensor, labels: Sequence[int]) -> int:
    """Return the number of examples whose largest score is that of their class.

    Args:
        scores: Scores of shape (examples, classes).
        labels: Class index of each example.
    """
    predicted = ops.argmax(scores, axis=-1).tolist()
    return sum(a == b for a, b in zip(predicted, labels, strict=True))
