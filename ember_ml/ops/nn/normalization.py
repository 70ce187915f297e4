"""Normalization to zero mean and unit variance, or to unit norm."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._arguments import normalize_axis
from ember_ml.ops._composite import along, check_real, in_float32, root

__all__ = [
    "batch_norm",
    "batch_norm_train",
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "normalize",
    "rms_norm",
]


def _check_trailing(op: str, name: str, weight: Tensor | None, x: Tensor, axis: int) -> None:
    if weight is not None and weight.shape != x.shape[axis:]:
        raise ShapeError(
            f"{op}: {name} has shape {weight.shape}; expected {x.shape[axis:]}, "
            f"the normalized axes of shape {x.shape}"
        )


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _affine_along(
    op: str, x: Tensor, weight: Tensor | None, bias: Tensor | None, axis: int
) -> Tensor:
    weight = None if weight is None else along(op, "weight", weight, x, axis)
    bias = None if bias is None else along(op, "bias", bias, x, axis)
    return _affine(x, weight, bias)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def layer_norm(
    x: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> Tensor:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias over the axes from `axis` on.

    Args:
        x: Input tensor.
        weight: Scale, of shape x.shape[axis:]. Default: 1.
        bias: Shift, of shape x.shape[axis:]. Default: 0.
        eps: Added to the variance for numerical stability.
        axis: First of the axes that are normalized together.
    """
    axis = normalize_axis("layer_norm", axis, x.ndim)
    _check_trailing("layer_norm", "weight", weight, x, axis)
    _check_trailing("layer_norm", "bias", bias, x, axis)
    axes = tuple(range(axis, x.ndim))
    centered = x - ops.mean(x, axis=axes, keepdims=True)
    variance = ops.mean(centered * centered, axis=axes, keepdims=True)
    return _affine(centered / ops.sqrt(variance + eps), weight, bias)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def rms_norm(
    x: TensorLike, weight: TensorLike | None = None, eps: float = 1e-6, axis: int = -1
) -> Tensor:
    """Return x / sqrt(mean(x^2) + eps) * weight over the axes from `axis` on.

    Args:
        x: Input tensor.
        weight: Scale, of shape x.shape[axis:]. Default: 1.
        eps: Added to the mean square for numerical stability.
        axis: First of the axes that are normalized together.
    """
    axis = normalize_axis("rms_norm", axis, x.ndim)
    _check_trailing("rms_norm", "weight", weight, x, axis)
    check_real("rms_norm", eps=eps)
    square = ops.mean(x * x, axis=tuple(range(axis, x.ndim)), keepdims=True)
    return _affine(x / ops.sqrt(square + eps), weight, None)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def group_norm(
    x: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    num_groups: int = 1,
    eps: float = 1e-5,
) -> Tensor:
    """Return x normalized within groups of channels.

    Args:
        x: (batch, channels, ...).
        weight: Scale of each channel. Default: 1.
        bias: Shift of each channel. Default: 0.
        num_groups: Number of groups; divides the channels.
        eps: Added to the variance for numerical stability.
    """
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: num_groups={num_groups} must be positive and divide the channels, "
            f"the second axis of shape {x.shape}"
        )
    if x.size == 0:
        return _affine_along("group_norm", x, weight, bias, 1)
    grouped = layer_norm(ops.reshape(x, (x.shape[0], num_groups, -1)), eps=eps)
    return _affine_along("group_norm", ops.reshape(grouped, x.shape), weight, bias, 1)


@composite(rule=rules.REAL_FLOAT)
def instance_norm(
    x: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return x with each channel of each sample normalized.

    Args:
        x: (batch, channels, ...).
        weight: Scale of each channel. Default: 1.
        bias: Shift of each channel. Default: 0.
        eps: Added to the variance for numerical stability.
    """
    if x.ndim < 3:
        raise ShapeError(f"instance_norm: x has shape {x.shape}; expected (batch, channels, ...)")
    return group_norm(x, weight, bias, num_groups=max(x.shape[1], 1), eps=eps)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
    axis: int = 1,
) -> Tensor:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias with given statistics per channel.

    Args:
        x: Input tensor.
        mean: Mean of each channel.
        variance: Variance of each channel.
        weight: Scale of each channel. Default: 1.
        bias: Shift of each channel. Default: 0.
        eps: Added to the variance for numerical stability.
        axis: Axis of the channels.
    """
    axis = normalize_axis("batch_norm", axis, x.ndim)
    check_real("batch_norm", eps=eps)
    scale = 1.0 / ops.sqrt(along("batch_norm", "variance", variance, x, axis) + eps)
    centered = x - along("batch_norm", "mean", mean, x, axis)
    return _affine_along("batch_norm", centered * scale, weight, bias, axis)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def batch_norm_train(
    x: TensorLike,
    weight: TensorLike | None = None,
    bias: TensorLike | None = None,
    eps: float = 1e-5,
    axis: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return x normalized by its own statistics per channel, the means and the biased variances.

    Args:
        x: Input tensor.
        weight: Scale of each channel. Default: 1.
        bias: Shift of each channel. Default: 0.
        eps: Added to the variance for numerical stability.
        axis: Axis of the channels.
    """
    axis = normalize_axis("batch_norm_train", axis, x.ndim)
    axes = tuple(other for other in range(x.ndim) if other != axis)
    mean = ops.mean(x, axis=axes)
    variance = ops.var(x, axis=axes)
    return batch_norm(x, mean, variance, weight, bias, eps=eps, axis=axis), mean, variance


@composite(rule=rules.REAL_FLOAT)
@in_float32
def normalize(x: TensorLike, p: float = 2.0, axis: int = -1, eps: float = 1e-12) -> Tensor:
    """Return x / max(norm, eps) with the p-norm along an axis.

    Args:
        x: Input tensor.
        p: Order of the norm; may be infinite. 0 counts the nonzero elements.
        axis: Axis of the vectors.
        eps: Lower bound of the norm.
    """
    normalize_axis("normalize", axis, x.ndim)
    size = ops.abs(x)
    if p == float("inf"):
        norm = ops.max(size, axis=axis, keepdims=True)
    elif p == float("-inf"):
        norm = ops.min(size, axis=axis, keepdims=True)
    elif p == 0:
        norm = ops.sum(ops.astype(size != 0, size.dtype), axis=axis, keepdims=True)
    elif p == 2:
        norm = root(ops.sum(x * x, axis=axis, keepdims=True))
    elif p == 1:
        norm = ops.sum(size, axis=axis, keepdims=True)
    else:
        norm = root(ops.sum(ops.pow(size, p), axis=axis, keepdims=True), p)
    return x / ops.maximum(norm, eps)


def l2_normalize(x: TensorLike, axis: int = -1, eps: float = 1e-12) -> Tensor:
    """Return x / max(norm, eps) with the Euclidean norm along an axis.

    Args:
        x: Input tensor.
        axis: Axis of the vectors.
        eps: Lower bound of the norm.
    """
    return normalize(x, 2.0, axis, eps)
