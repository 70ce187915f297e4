"""Conversion of scores to probabilities along an axis."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32
from ember_ml.ops.nn.activations import relu
from ember_ml.ops.random import Generator
from ember_ml.ops.random._draw import draw

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin", "sparsemax"]


@composite(rule=rules.REAL_FLOAT)
@in_float32
def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis without overflow; a row of -inf returns NaN.

    Args:
        x: Input tensor.
        axis: Axis of the classes.
    """
    if x.size == 0:
        return x
    weights = ops.exp(x - ops.max(x, axis=axis, keepdims=True))
    return weights / ops.sum(weights, axis=axis, keepdims=True)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def log_softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """Return log(softmax(x)) along an axis without overflow or underflow.

    Args:
        x: Input tensor.
        axis: Axis of the classes.
    """
    if x.size == 0:
        return x
    shifted = x - ops.max(x, axis=axis, keepdims=True)
    return shifted - ops.log(ops.sum(ops.exp(shifted), axis=axis, keepdims=True))


@composite(rule=rules.REAL_FLOAT)
def softmin(x: TensorLike, axis: int = -1) -> Tensor:
    """Return softmax(-x) along an axis.

    Args:
        x: Input tensor.
        axis: Axis of the classes.
    """
    return softmax(-x, axis)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def sparsemax(x: TensorLike, axis: int = -1) -> Tensor:
    """Return the point of the probability simplex nearest to x along an axis.

    Reference: Martins and Astudillo, "From Softmax to Sparsemax", 2016.

    Args:
        x: Input tensor.
        axis: Axis of the classes.
    """
    shifted = x - ops.max(x, axis=axis, keepdims=True)
    ordered = ops.sort(shifted, axis=axis, descending=True)
    rank = ops.cumulative_sum(ops.ones_like(ordered), axis=axis)
    support = ops.astype(ordered * rank > ops.cumulative_sum(ordered, axis=axis) - 1.0, x.dtype)
    total = ops.sum(ordered * support, axis=axis, keepdims=True)
    return relu(shifted - (total - 1.0) / ops.sum(support, axis=axis, keepdims=True))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def gumbel_softmax(
    x: TensorLike,
    temperature: float = 1.0,
    axis: int = -1,
    *,
    hard: bool = False,
    seed: int | Generator | None = None,
) -> Tensor:
    """Return softmax((x + Gumbel noise) / temperature): a soft sample of the classes.

    Args:
        x: Logits.
        temperature: Positive; the lower, the closer to one-hot.
        axis: Axis of the classes.
        hard: Whether to return one-hot samples with the gradient of the soft sample (straight
            through).
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    if not temperature > 0:
        raise ArgumentError(f"gumbel_softmax: temperature must be positive; got {temperature}")
    noise = draw("gumbel", x.shape, 0.0, 1.0, like=x, seed=seed)
    soft = softmax((x + noise) / temperature, axis)
    if not hard:
        return soft
    best = ops.argmax(soft, axis, keepdims=True)
    chosen = ops.put_along_axis(ops.zeros_like(soft), best, ops.ones_like(best), axis)
    return soft + ops.stop_gradient(chosen - soft)
