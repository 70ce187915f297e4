"""Regression and probability losses."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops._composite import in_float32, root
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
    """Check that predictions and targets have one shape: broadcasting here would hide mistakes."""
    if x.shape != y.shape:
        raise ShapeError(
            f"{op}: predictions {x.shape} and targets {y.shape} must have the same shape"
        )


def reduce(op: str, loss: Tensor, reduction: str) -> Tensor:
    """Return the mean, the sum, or the losses themselves."""
    if reduction == "none":
        return loss
    if reduction == "sum":
        return ops.sum(loss)
    if reduction == "mean":
        return ops.sum(loss) / loss.size if loss.size else ops.sum(loss) * float("nan")
    raise ArgumentError(f"{op}: reduction must be 'mean', 'sum' or 'none'; got {reduction!r}")


@composite(rule=rules.REAL_FLOAT)
@in_float32
def mse_loss(x: TensorLike, y: TensorLike, reduction: str = "mean") -> Tensor:
    """Return the squared error (x - y)^2.

    Args:
        x: Predictions.
        y: Targets, of the shape of x.
        reduction: "mean", "sum" or "none".
    """
    same_shape("mse_loss", x, y)
    return reduce("mse_loss", ops.square(x - y), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def l1_loss(x: TensorLike, y: TensorLike, reduction: str = "mean") -> Tensor:
    """Return the absolute error |x - y|.

    Args:
        x: Predictions.
        y: Targets, of the shape of x.
        reduction: "mean", "sum" or "none".
    """
    same_shape("l1_loss", x, y)
    return reduce("l1_loss", ops.abs(x - y), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def huber_loss(x: TensorLike, y: TensorLike, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return the Huber loss: d^2 / 2 for d = |x - y| <= delta, else delta * (d - delta / 2).

    Args:
        x: Predictions.
        y: Targets, of the shape of x.
        delta: Distance at which the loss becomes linear, positive.
        reduction: "mean", "sum" or "none".
    """
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta must be positive; got {delta}")
    same_shape("huber_loss", x, y)
    distance = ops.abs(x - y)
    near = ops.minimum(distance, delta)
    return reduce("huber_loss", near * (distance - near * 0.5), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def smooth_l1_loss(
    x: TensorLike, y: TensorLike, beta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return the smooth L1 loss: d^2 / (2 beta) for d = |x - y| <= beta, else d - beta / 2.

    Args:
        x: Predictions.
        y: Targets, of the shape of x.
        beta: Distance at which the loss becomes linear; 0 is the L1 loss.
        reduction: "mean", "sum" or "none".
    """
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative; got {beta}")
    same_shape("smooth_l1_loss", x, y)
    distance = ops.abs(x - y)
    if beta > 0:
        near = ops.minimum(distance, beta)
        distance = near * (distance - near * 0.5) / beta
    return reduce("smooth_l1_loss", distance, reduction)


def _log(p: Tensor) -> Tensor:
    """Return the logarithm, at least -100."""
    is_positive = p > 0
    log = ops.log(ops.where(is_positive, p, 1.0))
    return ops.where(is_positive, ops.maximum(log, -100.0), -100.0)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def binary_cross_entropy(
    x: TensorLike, y: TensorLike, weight: TensorLike | None = None, reduction: str = "mean"
) -> Tensor:
    """Return -(y log(x) + (1 - y) log(1 - x)), with logarithms of at least -100.

    Args:
        x: Probabilities.
        y: Targets in [0, 1], of the shape of x.
        weight: Factor of each loss; broadcasts. Default: 1.
        reduction: "mean", "sum" or "none".
    """
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
    """Return the binary cross entropy of sigmoid(x), without overflow.

    Args:
        x: Logits.
        y: Targets in [0, 1], of the shape of x.
        weight: Factor of each loss; broadcasts. Default: 1.
        pos_weight: Factor of the positive targets' part of the loss; broadcasts. Default: 1.
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
    """Return the Kullback-Leibler divergence y * (log(y) - x).

    Args:
        x: Log-probabilities of the prediction.
        y: Target probabilities, of the shape of x.
        log_target: Whether y holds log-probabilities.
        reduction: "mean", "sum", "none", or "batchmean": the sum divided by the batch size.
    """
    same_shape("kl_div", x, y)
    if log_target:
        loss = ops.exp(y) * (y - x)
    else:
        is_positive = y > 0
        loss = ops.where(is_positive, y * ops.log(ops.where(is_positive, y, 1.0)), 0.0) - y * x
    if reduction == "batchmean":
        return ops.sum(loss) / (x.shape[0] if x.ndim else 1)
    return reduce("kl_div", loss, reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def hinge_loss(
    x: TensorLike, y: TensorLike, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return the hinge loss max(0, margin - x * y).

    Args:
        x: Predictions.
        y: Targets, -1 or 1, of the shape of x.
        margin: Product x * y from which the loss is zero.
        reduction: "mean", "sum" or "none".
    """
    same_shape("hinge_loss", x, y)
    return reduce("hinge_loss", relu(margin - x * y), reduction)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def cosine_similarity(x: TensorLike, y: TensorLike, axis: int = -1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between x and y along an axis.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
        axis: Axis of the vectors.
        eps: Lower bound of the norms.
    """
    x, y = ops.broadcast_arrays(x, y)
    axis = normalize_axis("cosine_similarity", axis, x.ndim)
    norms = [root(ops.sum(part * part, axis=axis, keepdims=True)) for part in (x, y)]
    return ops.sum((x / ops.maximum(norms[0], eps)) * (y / ops.maximum(norms[1], eps)), axis=axis)


mae_loss = l1_loss
