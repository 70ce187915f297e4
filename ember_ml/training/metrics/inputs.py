"""Conversion and checks of the predictions, targets and masks of metrics."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor


def expand_mask(metric: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """Return a mask of the leading axes of a tensor, broadcast to its shape.

    Args:
        metric: Name of the metric in errors.
        mask: Mask, or None.
        like: Tensor of the wanted shape.
    """
    if mask is None:
        return None
    if mask.shape != like.shape[: mask.ndim]:
        raise ShapeError(
            f"{metric}: the mask has shape {mask.shape}; expected the shape {like.shape} of the "
            "targets, or that of their leading axes"
        )
    return ops.broadcast_to(
        ops.reshape(mask, mask.shape + (1,) * (like.ndim - mask.ndim)), like.shape
    )


def total(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return the sum of the elements under the mask.

    Args:
        x: Elements.
        mask: Mask of the same shape; None selects all elements.
    """
    return ops.sum(x if mask is None else ops.where(mask, x, ops.zeros_like(x)))


def count(like: Tensor, mask: Tensor | None) -> Tensor:
    """Return the number of elements under the mask.

    Args:
        like: Elements.
        mask: Mask of the same shape; None selects all elements.
    """
    if mask is not None:
        return ops.sum(mask)
    return ops.full_like(ops.sum(like), like.size, dtype=int64)


def valid(metric: str, target: Tensor, mask: Tensor | None, ignore_index: int) -> Tensor:
    """Return a mask of the targets that are neither masked nor equal to `ignore_index`.

    Args:
        metric: Name of the metric in errors.
        target: Class indices.
        mask: Mask of the targets or of their leading axes, or None.
        ignore_index: Target value to ignore.
    """
    counts = target != ignore_index
    mask = expand_mask(metric, mask, target)
    return counts if mask is None else ops.logical_and(counts, mask)


def as_classes(target: Tensor) -> Tensor:
    """Return targets as class indices; floats become 1 above 0.5, else 0.

    Args:
        target: Class indices, booleans or floats.
    """
    return ops.astype(target > 0.5 if target.dtype.is_floating else target, int64)


def classify(
    metric: str,
    prediction: Tensor,
    target: Tensor,
    mask: Tensor | None,
    ignore_index: int,
    threshold: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return true classes (0 where invalid), predicted classes, and the mask of valid targets.

    Args:
        metric: Name of the metric in errors.
        prediction: Scores or class indices, as in `decide`.
        target: Class indices, booleans or floats.
        mask: Mask of the targets or of their leading axes, or None.
        ignore_index: Target value to ignore.
        threshold: Binary scores above it predict class 1.
    """
    classes = as_classes(target)
    counts = valid(metric, classes, mask, ignore_index)
    predicted = decide(metric, prediction, target, threshold)
    return ops.where(counts, classes, 0), predicted, counts


def decide(metric: str, prediction: Tensor, target: Tensor, threshold: float) -> Tensor:
    """Return the predicted class indices.

    Args:
        metric: Name of the metric in errors.
        prediction: Scores (..., classes), whose argmax is returned; binary scores of the targets'
            shape, which predict 1 above the threshold, else 0; or class indices.
        target: Targets.
        threshold: Threshold of binary scores.
    """
    is_score = prediction.dtype.is_floating and prediction.ndim == target.ndim + 1
    if is_score and prediction.shape[:-1] == target.shape and prediction.shape[-1] > 1:
        return ops.argmax(prediction, axis=-1)
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{metric}: predictions have shape {prediction.shape}; expected scores of shape "
            f"{(*target.shape, 'classes')}, or the shape {target.shape} of the targets"
        )
    above = prediction > threshold if prediction.dtype.is_floating else prediction
    return ops.astype(above, int64)


def class_count(metric: str, prediction: Tensor, target: Tensor, num_classes: int | None) -> int:
    """Return the number of classes, inferred from the scores if it is not given.

    Args:
        metric: Name of the metric in errors.
        prediction: Scores or class indices.
        target: Targets.
        num_classes: Number of classes, or None.
    """
    if not prediction.dtype.is_floating:
        if num_classes is None and prediction.dtype.is_integer:
            raise ArgumentError(
                f"{metric}: num_classes is required if the predictions are class indices"
            )
        return num_classes or 2
    inferred = 2 if prediction.shape == target.shape else int(prediction.shape[-1])
    if num_classes is not None and num_classes < inferred:
        raise ArgumentError(
            f"{metric}: got scores of {inferred} classes; expected at most {num_classes}"
        )
    return num_classes or inferred


def tally(classes: Tensor, counts: Tensor, size: int) -> Tensor:
    """Return the number of occurrences of each class.

    Args:
        classes: Class indices, all in range.
        counts: Mask of the classes to count.
        size: Number of classes.
    """
    ones = ops.reshape(ops.astype(counts, int64), (-1,))
    return ops.segment_sum(ones, ops.reshape(classes, (-1,)), size)


def same_shape(metric: str, prediction: Tensor, target: Tensor) -> None:
    """Raise a ShapeError unless the shapes are equal.

    Args:
        metric: Name of the metric in errors.
        prediction: Predictions.
        target: Targets.
    """
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{metric}: predictions {prediction.shape} and targets {target.shape} must have the "
            "same shape"
        )


def check_scores(metric: str, prediction: Tensor, target: Tensor) -> None:
    """Raise an error unless the predictions are scores (..., classes) for the targets.

    Args:
        metric: Name of the metric in errors.
        prediction: Predictions.
        target: Class indices.
    """
    if not prediction.dtype.is_floating or not target.dtype.is_integer:
        raise ArgumentTypeError(
            f"{metric}: expected floating-point scores and integer class indices, not "
            f"{prediction.dtype} and {target.dtype}"
        )
    if prediction.shape[:-1] != target.shape or prediction.ndim == 0:
        raise ShapeError(
            f"{metric}: predictions have shape {prediction.shape}; expected "
            f"{(*target.shape, 'classes')} for targets of shape {target.shape}"
        )


def divide(x: float, y: float, default: float = 0.0) -> float:
    """Return x / y.

    Args:
        x: Numerator.
        y: Denominator.
        default: Result if `y` is 0.
    """
    return x / y if y else default
