"""Predictions and targets in the form that metrics count."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor


def expand_mask(metric: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """The mask in the shape of a tensor, on whose leading axes it says what counts."""
    if mask is None:
        return None
    if mask.shape != like.shape[: mask.ndim]:
        raise ShapeError(
            f"{metric}: a mask of the shape {mask.shape} for targets of {like.shape}; "
            "it takes their shape or that of their leading axes"
        )
    return ops.broadcast_to(
        ops.reshape(mask, mask.shape + (1,) * (like.ndim - mask.ndim)), like.shape
    )


def total(x: Tensor, mask: Tensor | None) -> Tensor:
    """The sum of the elements that count."""
    return ops.sum(x if mask is None else ops.where(mask, x, ops.zeros_like(x)))


def count(like: Tensor, mask: Tensor | None) -> Tensor:
    """How many elements count."""
    if mask is not None:
        return ops.sum(mask)
    return ops.full_like(ops.sum(like), like.size, dtype=int64)


def valid(metric: str, target: Tensor, mask: Tensor | None, ignore_index: int) -> Tensor:
    """Which targets are neither masked nor to be ignored."""
    counts = target != ignore_index
    mask = expand_mask(metric, mask, target)
    return counts if mask is None else ops.logical_and(counts, mask)


def as_classes(target: Tensor) -> Tensor:
    """Targets as class numbers; floats and booleans are sides, 0 or 1."""
    return ops.astype(target > 0.5 if target.dtype.is_floating else target, int64)


def decide(metric: str, prediction: Tensor, target: Tensor, threshold: float) -> Tensor:
    """The class numbers that predictions stand for.

    Scores with one axis more than the targets: the best class along the last. Scores of the shape
    of the targets: 1 above the threshold, else 0. Integers and booleans: themselves.
    """
    is_score = prediction.dtype.is_floating and prediction.ndim == target.ndim + 1
    if is_score and prediction.shape[:-1] == target.shape and prediction.shape[-1] > 1:
        return ops.argmax(prediction, axis=-1)
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{metric}: predictions of the shape {prediction.shape} for targets of {target.shape}; "
            f"they are scores {(*target.shape, 'classes')}, or have the shape of the targets"
        )
    above = prediction > threshold if prediction.dtype.is_floating else prediction
    return ops.astype(above, int64)


def class_count(metric: str, prediction: Tensor, target: Tensor, given: int | None) -> int:
    """How many classes there are: as given, or as the scores show."""
    if not prediction.dtype.is_floating:
        if given is None and prediction.dtype.is_integer:
            raise ArgumentError(
                f"{metric}: num_classes must be given for predictions that are class numbers"
            )
        return given or 2
    shown = 2 if prediction.shape == target.shape else int(prediction.shape[-1])
    if given is not None and given < shown:
        raise ArgumentError(f"{metric}: scores of {shown} classes where there are to be {given}")
    return given or shown


def tally(classes: Tensor, counts: Tensor, size: int) -> Tensor:
    """How often each class occurs where `counts` is true; the classes are valid elsewhere too."""
    ones = ops.reshape(ops.astype(counts, int64), (-1,))
    return ops.segment_sum(ones, ops.reshape(classes, (-1,)), size)


def same_shape(metric: str, prediction: Tensor, target: Tensor) -> None:
    """Raise a ShapeError unless the shapes are equal."""
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{metric}: predictions of the shape {prediction.shape} and targets of "
            f"{target.shape}; they must be equal"
        )


def check_scores(metric: str, prediction: Tensor, target: Tensor) -> None:
    """Raise an error unless the predictions are scores of classes along the last axis."""
    if not prediction.dtype.is_floating or not target.dtype.is_integer:
        raise ArgumentTypeError(
            f"{metric} takes scores and class numbers, not {prediction.dtype} and {target.dtype}"
        )
    if prediction.shape[:-1] != target.shape or prediction.ndim == 0:
        raise ShapeError(
            f"{metric}: predictions of the shape {prediction.shape} for targets of {target.shape}; "
            f"they must be {(*target.shape, 'classes')}"
        )


def divide(x: float, y: float, otherwise: Any = 0.0) -> Any:
    """x / y, or something else where y is 0."""
    return x / y if y else otherwise
