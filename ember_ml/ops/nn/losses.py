"""Losses of predictions against values."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.indexing import normalize_axis
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._precision import in_float32
from ember_ml.ops._roots import root
from ember_ml.ops.nn.activations import relu

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_similarity",
    "hinge_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mae_loss",
    "mse_loss",
    "smooth_l1_loss",
]


def same_shape(op: str, x: Tensor, y: Tensor) -> None:
    """A prediction and its target have one shape; broadcasting here hides mistakes."""
    if x.shape != y.shape:
        raise ShapeError(
            f"{op}: predictions of the shape {x.shape} and targets of {y.shape}; they must be equal"
        )


def reduce(op: str, loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum, or the losses themselves."""
    if reduction == "none":
        return loss
    if reduction == "sum":
        return ops.sum(loss)
    if reduction == "mean":
        return ops.sum(loss) / loss.size if loss.size else ops.sum(loss) * float("nan")
    raise ArgumentError(f"{op}: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")


@composite(rule=rules.REAL_FLOAT)
@in_float32
def mse_loss(x: TensorLike, y: TensorLike, reduction: str = "mean") -> Tensor:
    """(x - y)^2."""
    same_shape("mse_loss", x, y)
    return reduce("mse_loss", ops.square(x - y), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def l1_loss(x: TensorLike, y: TensorLike, reduction: str = "mean") -> Tensor:
    """abs(x - y)."""
    same_shape("l1_loss", x, y)
    return reduce("l1_loss", ops.abs(x - y), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def huber_loss(x: TensorLike, y: TensorLike, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """(x - y)^2 / 2 up to a distance of delta, from there on delta * (abs(x - y) - delta / 2)."""
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be above 0, not {delta}")
    same_shape("huber_loss", x, y)
    distance = ops.abs(x - y)
    near = ops.minimum(distance, delta)
    return reduce("huber_loss", near * (distance - near * 0.5), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def smooth_l1_loss(
    x: TensorLike, y: TensorLike, beta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """(x - y)^2 / (2 beta) up to a distance of beta, from there on abs(x - y) - beta / 2."""
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative: {beta}")
    same_shape("smooth_l1_loss", x, y)
    distance = ops.abs(x - y)
    if beta > 0:
        near = ops.minimum(distance, beta)
        distance = near * (distance - near * 0.5) / beta
    return reduce("smooth_l1_loss", distance, reduction)


def _log(p: Tensor) -> Tensor:
    """The logarithm, no less than -100."""
    some = p > 0
    return ops.where(some, ops.maximum(ops.log(ops.where(some, p, 1.0)), -100.0), -100.0)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def binary_cross_entropy(
    x: TensorLike, y: TensorLike, weight: TensorLike | None = None, reduction: str = "mean"
) -> Tensor:
    """-(y log(x) + (1 - y) log(1 - x)) of probabilities x, the logarithms no less than -100."""
    same_shape("binary_cross_entropy", x, y)
    hit, miss = _log(x), _log(1.0 - x)
    loss = (y - 1.0) * miss - y * hit
    return reduce("binary_cross_entropy", loss if weight is None else loss * weight, reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def binary_cross_entropy_with_logits(
    x: TensorLike,
    y: TensorLike,
    weight: TensorLike | None = None,
    pos_weight: TensorLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of sigmoid(x), without overflow.

    Args:
        x: the logits.
        y: the targets, from 0 to 1.
        weight: a factor of each loss; broadcasts.
        pos_weight: a factor of the positive targets' share of the loss; broadcasts.
        reduction: "mean", "sum" or "none".
    """
    same_shape("binary_cross_entropy_with_logits", x, y)
    positive = ops.softplus(-x)  # -log(sigmoid(x))
    share = 1.0 if pos_weight is None else 1.0 + (pos_weight - 1.0) * y
    loss = (1.0 - y) * x + share * positive
    return reduce(
        "binary_cross_entropy_with_logits", loss if weight is None else loss * weight, reduction
    )


@composite(rule=rules.REAL_FLOAT)
@in_float32
def kl_div(
    x: TensorLike, y: TensorLike, log_target: bool = False, reduction: str = "mean"
) -> Tensor:
    """Y * (log(y) - x): the divergence of the log-probabilities x from the probabilities y.

    Args:
        x: log-probabilities.
        y: probabilities, or log-probabilities with `log_target`.
        log_target: whether y is in logarithms too.
        reduction: "mean", "sum", "none", or "batchmean": the sum over the length of the first axis.
    """
    same_shape("kl_div", x, y)
    if log_target:
        loss = ops.exp(y) * (y - x)
    else:
        some = y > 0
        loss = ops.where(some, y * ops.log(ops.where(some, y, 1.0)), 0.0) - y * x
    if reduction == "batchmean":
        return ops.sum(loss) / (x.shape[0] if x.ndim else 1)
    return reduce("kl_div", loss, reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def hinge_loss(
    x: TensorLike, y: TensorLike, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """max(0, margin - x * y) for targets y of -1 and 1."""
    same_shape("hinge_loss", x, y)
    return reduce("hinge_loss", relu(margin - x * y), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def cosine_similarity(x: TensorLike, y: TensorLike, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x and y along an axis; norms below eps count as eps."""
    x, y = ops.broadcast_arrays(x, y)
    axis = normalize_axis("cosine_similarity", axis, x.ndim)
    norms = [root(ops.sum(part * part, axis=axis, keepdims=True)) for part in (x, y)]
    return ops.sum((x / ops.maximum(norms[0], eps)) * (y / ops.maximum(norms[1], eps)), axis=axis)


mae_loss = l1_loss
