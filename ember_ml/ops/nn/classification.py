"""Classification losses of logits and log-probabilities."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import rules, runtime
from ember_ml._core.dispatch import IndexLike, MaskLike, composite, host_checked
from ember_ml._core.dtype import DEFAULT_INT
from ember_ml._core.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from ember_ml._core.indexing import check_range, host_array, host_shape
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._arguments import as_integer, normalize_axis
from ember_ml.ops._composite import along, in_float32
from ember_ml.ops.nn.losses import reduce, same_shape
from ember_ml.ops.nn.probabilities import log_softmax

__all__ = ["cross_entropy", "nll_loss"]


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _picked(
    op: str, scores: Tensor, classes: Tensor, weight: Tensor | None, ignore_index: int, axis: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the negative scores of the targets, their weights, and the mask of valid targets.

    A class out of range raises an error where indices are checked. On a lazy backend, which does
    not check them, its score is NaN.
    """
    if classes.shape != _without(scores.shape, axis):
        raise ShapeError(
            f"{op}: targets have shape {classes.shape}; expected {_without(scores.shape, axis)}, "
            f"the shape of the scores {scores.shape} without axis {axis}"
        )
    classes, length = ops.astype(classes, DEFAULT_INT), scores.shape[axis]
    counts = classes != as_integer(op, "ignore_index", ignore_index)
    is_lazy = runtime.LOADED[scores.backend].IS_LAZY
    known = (classes >= 0) & (classes < length) if is_lazy else None
    if known is not None:
        safe = ops.where(counts & known, classes, 0)
    else:  # a negative class must not count from the end
        safe = ops.where(counts, ops.where(classes < 0, -length - 1, classes), 0)
    try:
        picked = ops.take_along_axis(scores, ops.expand_dims(safe, axis=axis), axis=axis)
    except IndexOutOfRangeError:
        raise IndexOutOfRangeError(
            f"{op}: a target is neither one of {length} classes nor ignore_index={ignore_index}"
        ) from None
    share = ops.astype(counts, scores.dtype)
    if weight is not None:
        along(op, "weight", weight, scores, axis)
        share = share * ops.reshape(ops.take(weight, ops.reshape(safe, (-1,)), axis=0), safe.shape)
    loss = -ops.squeeze(picked, axis=axis)
    if known is not None:
        loss = ops.where(known, loss, float("nan"))
    return ops.where(counts, loss, 0.0) * share, share, counts


def _reduce_weighted(op: str, loss: Tensor, share: Tensor, reduction: str) -> Tensor:
    if reduction != "mean":
        return reduce(op, loss, reduction)
    total = ops.sum(share)
    return ops.where(total == 0, float("nan"), ops.sum(loss) / ops.where(total == 0, 1.0, total))


def _check_classes(name: str, arguments: dict[str, Any]) -> None:
    array, shape = host_array(arguments["targets"]), host_shape(next(iter(arguments.values())))
    if array is not None and array.dtype.kind in "iu":
        length = shape[normalize_axis(name, arguments["axis"], len(shape))]
        where = f"{name} of {length} classes"
        check_range(array[array != arguments["ignore_index"]], length, where, negative=False)


@host_checked(_check_classes)
@composite(rule=rules.REAL_FLOAT)
@in_float32
def nll_loss(
    x: TensorLike,
    targets: IndexLike,
    weight: TensorLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    axis: int = -1,
) -> Tensor:
    """Return the negative log-likelihood -weight[target] * x[target].

    The mean is NaN without valid targets.

    Args:
        x: Log-probabilities.
        targets: Classes, of x's shape without `axis`.
        weight: Weight of each class. Default: 1.
        ignore_index: Targets of this value are ignored.
        reduction: "mean", "sum" or "none". The mean is weighted by the weights of the valid
            targets.
        axis: Axis of the classes.
    """
    axis = normalize_axis("nll_loss", axis, x.ndim)
    loss, share, _ = _picked("nll_loss", x, targets, weight, ignore_index, axis)
    return _reduce_weighted("nll_loss", loss, share, reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def class_cross_entropy(
    logits: TensorLike,
    targets: IndexLike,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the cross entropy of each example with its class; 0 if it is ignored.

    Args:
        logits: Unnormalized log-probabilities of the classes.
        targets: Classes, of the logits' shape without `axis`.
        ignore_index: Targets of this value are ignored.
        label_smoothing: Fraction of the target that is spread over all classes, in [0, 1].
        axis: Axis of the classes.
    """
    axis = normalize_axis("cross_entropy", axis, logits.ndim)
    scores = log_softmax(logits, axis)
    loss, _, counts = _picked("cross_entropy", scores, targets, None, ignore_index, axis)
    if label_smoothing > 0:
        spread = ops.where(counts, -ops.sum(scores, axis=axis), 0.0)
        loss = loss * (1.0 - label_smoothing) + spread * (label_smoothing / scores.shape[axis])
    return loss


@host_checked(_check_classes)
@composite(rule=rules.REAL_FLOAT)
@in_float32
def cross_entropy(
    logits: TensorLike,
    targets: MaskLike,
    weight: TensorLike | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    axis: int = -1,
) -> Tensor:
    """Return the cross entropy between softmax(logits) and the targets.

    A class out of range raises an IndexError; MLX checks lists and NumPy arrays only.

    Args:
        logits: Unnormalized log-probabilities of the classes.
        targets: Classes, of the logits' shape without `axis`, or probabilities of the logits'
            shape.
        weight: Weight of each class. Default: 1.
        ignore_index: Targets of this value are ignored.
        label_smoothing: Fraction of the target that is spread over all classes, in [0, 1].
        reduction: "mean", "sum" or "none". The mean is weighted by the weights of the valid
            targets.
        axis: Axis of the classes.
    """
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(
            f"cross_entropy: label_smoothing must be in [0, 1]; got {label_smoothing}"
        )
    axis = normalize_axis("cross_entropy", axis, logits.ndim)
    if targets.dtype.is_integer and weight is None:
        classes = ops.astype(targets, DEFAULT_INT)
        loss = class_cross_entropy(logits, classes, ignore_index, label_smoothing, axis)
        return _reduce_weighted(
            "cross_entropy", loss, ops.astype(classes != ignore_index, loss.dtype), reduction
        )
    scores = log_softmax(logits, axis)
    if not targets.dtype.is_integer:
        return _soft_cross_entropy(scores, targets, weight, label_smoothing, reduction, axis)
    loss, share, counts = _picked("cross_entropy", scores, targets, weight, ignore_index, axis)
    if label_smoothing > 0:
        weighted = scores * along("cross_entropy", "weight", weight, scores, axis)
        spread = ops.where(counts, -ops.sum(weighted, axis=axis), 0.0)
        loss = loss * (1.0 - label_smoothing) + spread * (label_smoothing / scores.shape[axis])
    return _reduce_weighted("cross_entropy", loss, share, reduction)


def _soft_cross_entropy(
    scores: Tensor,
    targets: Tensor,
    weight: Tensor | None,
    label_smoothing: float,
    reduction: str,
    axis: int,
) -> Tensor:
    same_shape("cross_entropy", scores, targets)
    targets = ops.astype(targets, scores.dtype)
    if label_smoothing > 0:
        targets = targets * (1.0 - label_smoothing) + label_smoothing / scores.shape[axis]
    if weight is not None:
        scores = scores * along("cross_entropy", "weight", weight, scores, axis)
    return reduce("cross_entropy", -ops.sum(scores * targets, axis=axis), reduction)
