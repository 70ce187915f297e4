"""Cross-entropy losses of classification."""

from __future__ import annotations

import functools

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import int64
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor, TensorLike
from ember_ml.configs.fields import NonNegative, Probability
from ember_ml.ops._arguments import normalize_axis
from ember_ml.registry import register
from ember_ml.training.losses.base import Loss, Reduction, pair, reduce, weighted, wide


def cross_entropy(
    prediction: TensorLike,
    target: TensorLike,
    *,
    class_weight: TensorLike | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return -log(softmax(prediction)[target]) of logits and class indices.

    The mean is weighted by the weights of the targets that are not ignored. It is 0, with a
    gradient of 0, if all are ignored: a batch of padding leaves the model unchanged.

    Args:
        prediction: Logits.
        target: Class indices, of the logits' shape without `axis`.
        class_weight: Factor on the loss of each class. Default: 1 for all.
        ignore_index: Target value that is ignored.
        label_smoothing: Share of the target probability that is spread over all classes.
        axis: Axis of the classes.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x = wide(prediction)
    y = target
    if not isinstance(y, EmberTensor) or y.backend != x.backend:
        y = convert_to_tensor(y, backend=x.backend)
    check_classes(x, y, axis)
    y = ops.astype(y, int64)  # ignore_index fits no uint8
    factors = factors_of(class_weight, x)
    loss = functools.partial(_reduced, x, y, factors, ignore_index, label_smoothing, axis)
    share = functools.partial(share_of, x, y, factors, ignore_index)
    return weighted("cross_entropy", loss, reduction, sample_weight, share=share)


def _reduced(
    x: Tensor,
    y: Tensor,
    factors: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
    axis: int,
    reduction: str,
) -> Tensor:
    """Return the cross-entropy; a mean is that of the targets that are not ignored, or 0."""
    if reduction != "mean":
        return ops.cross_entropy(x, y, factors, ignore_index, label_smoothing, reduction, axis)
    total = ops.cross_entropy(x, y, factors, ignore_index, label_smoothing, "sum", axis)
    if factors is not None:
        return reduce(total, share_of(x, y, factors, ignore_index), "mean")
    return total / ops.maximum(ops.sum(y != ignore_index, dtype=x.dtype), 1.0)


def check_classes(x: Tensor, y: Tensor, axis: int) -> None:
    """Raise an error unless y has class indices, in the shape of x without an axis."""
    if not y.dtype.is_integer:
        raise ArgumentTypeError(
            f"cross_entropy: targets must be class indices, not {y.dtype} of shape {y.shape}; "
            "for probabilities use categorical_cross_entropy"
        )
    axis = normalize_axis("cross_entropy", axis, x.ndim)
    wanted = x.shape[:axis] + x.shape[axis + 1 :]
    if y.shape != wanted:
        raise ShapeError(
            f"cross_entropy: targets must have the shape {wanted} for predictions of shape "
            f"{x.shape} with classes along axis {axis}, not {y.shape}"
        )


def factors_of(class_weight: TensorLike | None, like: Tensor) -> Tensor | None:
    """Return the factor on the loss of each class, in the dtype and backend of `like`."""
    if class_weight is None:
        return None
    return convert_to_tensor(class_weight, dtype=like.dtype, backend=like.backend)


def share_of(x: Tensor, y: Tensor, factors: Tensor | None, ignore_index: int) -> Tensor:
    """Return the weight of each target in a mean, in the dtype of x."""
    counts = y != ignore_index
    share = ops.astype(counts, x.dtype)
    if factors is None:
        return share
    picked = ops.take(factors, ops.reshape(ops.where(counts, y, 0), (-1,)), axis=0)
    return share * ops.reshape(picked, y.shape)


def categorical_cross_entropy(
    prediction: TensorLike,
    target: TensorLike,
    *,
    class_weight: TensorLike | None = None,
    label_smoothing: float = 0.0,
    axis: int = -1,
    reduction: str = "mean",
    sample_weight: TensorLike | None = None,
) -> Tensor:
    """Return -sum(target log(softmax(prediction))) of logits and class probabilities.

    Args:
        prediction: Logits.
        target: Probabilities, or one-hot vectors, of the same shape.
        class_weight: Factor on the loss of each class. Default: 1 for all.
        label_smoothing: Share of the target probability that is spread over all classes.
        axis: Axis of the classes.
        reduction: "mean", "sum" or "none" (the loss of each element).
        sample_weight: Factor on the loss of each element, or a boolean mask.
    """
    x, y = pair("categorical_cross_entropy", prediction, target)
    factors = factors_of(class_weight, x)

    def loss(how: str) -> Tensor:
        return ops.cross_entropy(x, y, factors, -100, label_smoothing, how, axis)

    return weighted("categorical_cross_entropy", loss, reduction, sample_weight)


@register("losses/cross_entropy", aliases=["sparse_categorical_cross_entropy"])
class CrossEntropy(Loss):
    """Cross-entropy of logits and class indices: -log(softmax(prediction)[target]).

    The mean is weighted by the weights of the targets that are not ignored; 0 if all are ignored.

    Args:
        ignore_index: Target value that is ignored.
        label_smoothing: Share of the target probability that is spread over all classes.
        class_weight: Factor on the loss of each class. Default: 1 for all.
        axis: Axis of the classes.
        reduction: "mean", "sum" or "none" (the loss of each element).

    Shape: (..., classes) and (...) -> ().

    Example:
        >>> loss = ember_ml.training.losses.CrossEntropy()
        >>> round(loss(ops.zeros((2, 10)), tensor.array([3, 7])).item(), 4)
        2.3026
    """

    function = staticmethod(cross_entropy)

    def __init__(
        self,
        ignore_index: int = -100,
        label_smoothing: Probability = 0.0,
        class_weight: tuple[NonNegative, ...] | None = None,
        axis: int = -1,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options |= {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
        self.options |= {"class_weight": class_weight, "axis": axis}


@register("losses/categorical_cross_entropy", aliases=["soft_cross_entropy"])
class CategoricalCrossEntropy(Loss):
    """Cross-entropy of logits and class probabilities: -sum(target log(softmax(prediction))).

    Args:
        label_smoothing: Share of the target probability that is spread over all classes.
        class_weight: Factor on the loss of each class. Default: 1 for all.
        axis: Axis of the classes.
        reduction: "mean", "sum" or "none" (the loss of each element).

    Shape: (..., classes) and (..., classes) -> ().
    """

    function = staticmethod(categorical_cross_entropy)

    def __init__(
        self,
        label_smoothing: Probability = 0.0,
        class_weight: tuple[NonNegative, ...] | None = None,
        axis: int = -1,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.options["label_smoothing"] = label_smoothing
        self.options |= {"class_weight": class_weight, "axis": axis}
