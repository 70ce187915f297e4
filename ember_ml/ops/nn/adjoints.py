"""Adjoints of neural network ops, for the VJP rules: one call each, so that a backend can fuse it.

The bodies are the references. Their gradients, which higher derivatives need, are those of the ops
in them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, MaskLike, composite
from ember_ml._core.dtype import DEFAULT_INT
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32
from ember_ml.ops.nn.attention import ATTENTION, attention_weights, spread_heads
from ember_ml.ops.nn.positions import rope

__all__: list[str] = []

_SLOPE = math.sqrt(2 / math.pi)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def silu_adjoint(g: TensorLike, x: TensorLike) -> Tensor:
    """Return the gradient of `silu`.

    Args:
        g: Gradient of the result.
        x: Operand.
    """
    s = ops.sigmoid(x)
    return g * (s + x * s * (1 - s))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def gelu_adjoint(g: TensorLike, x: TensorLike, approximate: bool = False) -> Tensor:
    """Return the gradient of `gelu`.

    Args:
        g: Gradient of the result.
        x: Operand.
        approximate: As in `gelu`.
    """
    square = x * x
    if approximate in (True, "tanh"):
        t = ops.tanh(x * (_SLOPE + _SLOPE * 0.044715 * square))
        inner = x * (1 - t * t) * (_SLOPE + 3 * _SLOPE * 0.044715 * square)
        return g * (0.5 * (1 + t + inner))
    cdf = 0.5 + 0.5 * ops.erf(x * math.sqrt(0.5))
    return g * (cdf + x * (ops.exp(square * -0.5) / math.sqrt(2 * math.pi)))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def glu_adjoint(g: TensorLike, x: TensorLike, axis: int = -1) -> Tensor:
    """Return the gradient of `glu`.

    Args:
        g: Gradient of the result.
        x: Operand.
        axis: Axis of the halves.
    """
    first, second = ops.split(x, 2, axis=axis)
    s = ops.sigmoid(second)
    return ops.concat([g * s, g * first * (s * (1 - s))], axis=axis)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def swiglu_adjoint(g: TensorLike, x: TensorLike, axis: int = -1) -> Tensor:
    """Return the gradient of `swiglu`.

    Args:
        g: Gradient of the result.
        x: Operand.
        axis: Axis of the halves.
    """
    first, second = ops.split(x, 2, axis=axis)
    s = ops.sigmoid(first)
    gate = first * s
    return ops.concat([g * second * (s + gate * (1 - s)), g * gate], axis=axis)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def silu_gate_adjoint(g: TensorLike, x: TensorLike, gate: TensorLike) -> tuple[Tensor, Tensor]:
    """Return the gradients of `silu_gate` for operands of one shape: of x and gate.

    Args:
        g: Gradient of the result.
        x: Gated operand.
        gate: Input of the gate.
    """
    s = ops.sigmoid(gate)
    opened = gate * s
    return g * opened, g * x * (s + opened * (1 - s))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def softplus_linear_adjoint(
    g: TensorLike, out: TensorLike, x: TensorLike, weight: TensorLike
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `softplus_linear`: of x, weight and bias.

    Args:
        g: Gradient of the result.
        out: Result.
        x: (..., in features).
        weight: (out features, in features).
    """
    slopes = g * -ops.expm1(-out)  # 1 - exp(-softplus(z)) = sigmoid(z)
    size = math.prod(x.shape[:-1])
    rows = ops.reshape(slopes, (size, weight.shape[0]))
    of_weight = ops.matmul(ops.matrix_transpose(rows), ops.reshape(x, (size, x.shape[-1])))
    return ops.matmul(slopes, weight), of_weight, ops.sum(rows, 0)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def softmax_adjoint(g: TensorLike, out: TensorLike, axis: int = -1) -> Tensor:
    """Return the gradient of `softmax`.

    Args:
        g: Gradient of the result.
        out: Result: the probabilities.
        axis: Axis of the classes.
    """
    return out * (g - ops.sum(g * out, axis, keepdims=True))


@composite(rule=rules.REAL_FLOAT)
@in_float32
def log_softmax_adjoint(g: TensorLike, out: TensorLike, axis: int = -1) -> Tensor:
    """Return the gradient of `log_softmax`.

    Args:
        g: Gradient of the result.
        out: Result: the log-probabilities.
        axis: Axis of the classes.
    """
    return g - ops.exp(out) * ops.sum(g, axis, keepdims=True)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def class_cross_entropy_adjoint(
    g: TensorLike,
    logits: TensorLike,
    targets: IndexLike,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    axis: int = -1,
) -> Tensor:
    """Return the gradient of `class_cross_entropy` with respect to the logits.

    Args:
        g: Gradient of the losses.
        logits: Unnormalized log-probabilities of the classes.
        targets: Classes, of the logits' shape without `axis`.
        ignore_index: Targets of this value are ignored.
        label_smoothing: Fraction of the target that is spread over all classes.
        axis: Axis of the classes.
    """
    classes = ops.astype(targets, DEFAULT_INT)
    counts = classes != ignore_index
    size = logits.shape[axis]
    safe = ops.where(counts, classes, 0)
    chosen = ops.one_hot(safe, size, axis=axis, dtype=logits.dtype)
    wanted = chosen * (1.0 - label_smoothing) + label_smoothing / max(size, 1)
    weight = ops.expand_dims(ops.where(counts, g, 0.0), axis)
    return weight * (ops.softmax(logits, axis) - wanted)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def layer_norm_adjoint(
    g: TensorLike,
    x: TensorLike,
    weight: TensorLike | None = None,
    eps: float = 1e-5,
    axis: int = -1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `layer_norm`: of x, weight and bias.

    Args:
        g: Gradient of the result.
        x: Operand.
        weight: Scale. Default: 1.
        eps: Added to the variance.
        axis: First of the axes that are normalized together.
    """
    axes = tuple(range(axis % x.ndim, x.ndim))
    others = tuple(range(axis % x.ndim))
    centered = x - ops.mean(x, axes, keepdims=True)
    scale = ops.rsqrt(ops.mean(centered * centered, axes, keepdims=True) + eps)
    unit = centered * scale
    slope = g if weight is None else g * weight
    along = ops.mean(slope * unit, axes, keepdims=True)
    grad = scale * (slope - ops.mean(slope, axes, keepdims=True) - unit * along)
    return grad, ops.sum(g * unit, others), ops.sum(g, others)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def rms_norm_adjoint(
    g: TensorLike,
    x: TensorLike,
    weight: TensorLike | None = None,
    eps: float = 1e-6,
    axis: int = -1,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of `rms_norm`: of x and weight.

    Args:
        g: Gradient of the result.
        x: Operand.
        weight: Scale. Default: 1.
        eps: Added to the mean square.
        axis: First of the axes that are normalized together.
    """
    axes = tuple(range(axis % x.ndim, x.ndim))
    scale = ops.rsqrt(ops.mean(x * x, axes, keepdims=True) + eps)
    unit = x * scale
    slope = g if weight is None else g * weight
    grad = scale * (slope - unit * ops.mean(slope * unit, axes, keepdims=True))
    return grad, ops.sum(g * unit, tuple(range(axis % x.ndim)))


@composite(rule=ATTENTION)
@in_float32
def attend_adjoint(
    g: TensorLike,
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: MaskLike | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `attend`: of query, key and value.

    Args:
        g: Gradient of the result.
        query: (..., heads, queries, features).
        key: (..., key heads, keys, features).
        value: (..., key heads, keys, value features).
        mask: Broadcasts to (..., heads, queries, keys).
        causal: Whether a query attends only to keys at its own position and before.
        window: Attend only to keys less than `window` positions away.
        scale: Factor of the scores. Default: 1 / sqrt(features).
    """
    weights, slopes = scores_gradient(g, query, key, value, mask, causal, window, scale)
    factor = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    of_key = ops.matmul(ops.matrix_transpose(slopes), query) * factor
    of_value = ops.matmul(ops.matrix_transpose(weights), g)
    of_query = ops.matmul(slopes, spread_heads(query, key)) * factor
    return of_query, _shared(of_key, key), _shared(of_value, value)


def scores_gradient(
    g: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    window: int | None,
    scale: float | None,
) -> tuple[Tensor, Tensor]:
    """Return the attention weights, and the gradient of the masked scores."""
    weights = attention_weights(query, spread_heads(query, key), mask, causal, window, scale)
    slopes = ops.matmul(g, ops.matrix_transpose(spread_heads(query, value)))
    return weights, softmax_adjoint(slopes, weights)


def _shared(x: Tensor, like: Tensor) -> Tensor:
    """Return the sum over the query heads that share a key head."""
    if x.shape == like.shape:
        return x
    groups = x.shape[-3] // like.shape[-3]
    return ops.sum(ops.reshape(x, (*like.shape[:-2], groups, *like.shape[-2:])), -3)


@composite(rule=rules.REAL_FLOAT)
def rotary_heads_adjoint(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    *,
    base: float = 10000.0,
    offset: int = 0,
    frequencies: Sequence[float] | None = None,
) -> Tensor:
    """Return the gradient of `rotary_heads`, (batch, time, features).

    Args:
        query: Gradient of the queries, (batch, heads, time, head features).
        key: Gradient of the keys.
        value: Gradient of the values.
        base: As in `rope`.
        offset: As in `rope`.
        frequencies: As in `rope`.
    """
    pairs = query.shape[-1] // 2
    if frequencies is None:
        frequencies = [base ** (-pair / pairs) for pair in range(pairs)]
    back = [-frequency for frequency in frequencies]
    rotated = [rope(part, offset=offset, frequencies=back) for part in (query, key)]
    heads = ops.permute_dims(ops.concat([*rotated, value], axis=1), (0, 2, 1, 3))
    return ops.reshape(heads, (*heads.shape[:2], heads.shape[2] * heads.shape[3]))
