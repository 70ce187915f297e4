"""Checks and conversions of predictions, targets and masks."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor


def expand_mask(metric: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """Return the mask broadcast from the leading axes of a tensor to its shape."""
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
    """Return the sum of the elements where the mask is True."""
    return ops.sum(x if mask is None else ops.where(mask, x, ops.zeros_like(x)))


def count(like: Tensor, mask: Tensor | None) -> Tensor:
    """Return the number of elements where the mask is True."""
    if mask is not None:
        return ops.sum(mask)
    return ops.full_like(ops.sum(like), like.size, dtype=int64)


def valid(metric: str, target: Tensor, mask: Tensor | None, ignore_index: int) -> Tensor:
    """Return True for the targets that are neither masked nor ignored."""
    counts = target != ignore_index
    mask = expand_mask(metric, mask, target)
    return counts if mask is None else ops.logical_and(counts, mask)


def as_classes(target: Tensor) -> Tensor:
    """Return targets as class indices; floats above 0.5 and True become 1, others 0."""
    return ops.astype(target > 0.5 if target.dtype.is_floating else target, int64)


def decide(metric: str, prediction: Tensor, target: Tensor, threshold: float) -> Tensor:
    """Return the predicted class indices.

    Scores with one more axis than the targets: the class with the highest score along the last
    axis. Scores of the targets' shape: 1 above the threshold, else 0. Integers and booleans are
    class indices already.
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


def class_count(metric: str, prediction: Tensor, target: Tensor, given: int | None) -> int:
    """Return the number of classes: the given one, or that of the scores."""
    if not prediction.dtype.is_floating:
        if given is None and prediction.dtype.is_integer:
            raise ArgumentError(
                f"{metric}: num_classes is required if the predictions are class indices"
            )
        return given or 2
    shown = 2 if prediction.shape == target.shape else int(prediction.shape[-1])
    if given is not None and given < shown:
        raise ArgumentError(f"{metric}: got scores of {shown} classes; expected at most {given}")
    return given or shown


def tally(classes: Tensor, counts: Tensor, size: int) -> Tensor:
    """Return how often each class occurs where `counts` is True.

    The classes must be valid indices everywhere.
    """
    ones = ops.reshape(ops.astype(counts, int64), (-1,))
    return ops.segment_sum(ones, ops.reshape(classes, (-1,)), size)


def same_shape(metric: str, prediction: Tensor, target: Tensor) -> None:
    """Raise a ShapeError unless the shapes are equal."""
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{metric}: predictions {prediction.shape} and targets {target.shape} must have the "
            "same shape"
        )


def check_scores(metric: str, prediction: Tensor, target: Tensor) -> None:
    """Raise an error unless the predictions are scores of classes along the last axis."""
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


def divide(x: float, y: float, otherwise: Any = 0.0) -> Any:
    """Return x / y, or `otherwise` if y is 0."""
    return x / y if y else otherwise
