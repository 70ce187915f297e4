"""Calibration of classifiers: temperature scaling and the expected calibration error."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.data.conversion import to_host

TEMPERATURES = (0.05, 20.0)
"""Range of fitted temperatures. Without a bound, it would be 0 if all predictions are right."""
HALVINGS = 60


def fit_temperature(logits: TensorLike, labels: TensorLike) -> float:
    """Return the temperature that minimizes the cross-entropy of `softmax(logits / temperature)`.

    It is above 1 if the model is overconfident. The result is between 0.05 and 20.

    Args:
        logits: Logits of shape (examples, classes), of data the model was not trained on.
        labels: Class index of each example.

    Reference: Guo et al., "On Calibration of Modern Neural Networks", 2017.

    Example:
        >>> from ember_ml.training.calibration import fit_temperature
        >>> round(fit_temperature([[4.0, 0.0]] * 3 + [[0.0, 4.0]], [0, 0, 0, 0]), 2)
        3.64
    """
    x, y = host_pair("fit_temperature", logits, labels)
    right = ops.take_along_axis(x, ops.expand_dims(y, -1), axis=-1)

    def slope(inverse: float) -> float:  # of the cross-entropy, which is convex in 1 / temperature
        expected = ops.sum(ops.softmax(x * inverse, axis=-1) * x, axis=-1, keepdims=True)
        return float(ops.mean(expected - right))

    low, high = (math.log(1.0 / each) for each in reversed(TEMPERATURES))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if slope(math.exp(middle)) > 0:
            high = middle
        else:
            low = middle
    return math.exp(-(low + high) / 2)


def expected_calibration_error(
    probabilities: TensorLike, labels: TensorLike, bins: int = 15
) -> float:
    """Return the mean difference between confidence and accuracy, over bins of the confidence.

    Args:
        probabilities: Probabilities of shape (examples, classes).
        labels: Class index of each example.
        bins: Number of bins of equal width.

    Example:
        >>> from ember_ml.training.calibration import expected_calibration_error
        >>> round(expected_calibration_error([[0.75, 0.25]] * 4, [0, 0, 0, 1]), 6)
        0.0
    """
    x, y = host_pair("expected_calibration_error", probabilities, labels)
    confidence = ops.max(x, axis=-1)
    right = ops.astype(ops.argmax(x, axis=-1) == y, x.dtype)
    place = ops.astype(ops.ceil(confidence * bins) - 1, "int64")
    members = ops.one_hot(ops.clip(place, 0, bins - 1), bins, dtype=x.dtype)
    gaps = ops.abs(ops.sum(members * ops.expand_dims(confidence - right, -1), axis=0))
    return float(ops.sum(gaps)) / x.shape[0]


def host_pair(where: str, scores: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    """Return scores as float64 and labels as int64 on the host, equal on every backend.

    Args:
        where: Name of the function in errors.
        scores: Scores of shape (examples, classes).
        labels: Class index of each example.
    """
    x = convert_to_tensor(to_host(scores), "float64", backend="numpy")
    y = convert_to_tensor(to_host(labels), "int64", backend="numpy")
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ShapeError(
            f"{where}: scores and labels must have the shapes (examples, classes) and (examples,), "
            f"not {x.shape} and {y.shape}"
        )
    if not x.shape[0]:
        raise ArgumentError(f"{where}: there are no examples")
    return x, y
