"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.dispatch import MaskLike, composite
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._composite import in_float32
from ember_ml.ops.nn.probabilities import softmax
from ember_ml.ops.nn.regularization import dropout as drop
from ember_ml.ops.random import Generator

__all__ = ["scaled_dot_product_attention"]

ATTENTION = DTypeRule("real floating", frozenset({"float"}), lift=True, contraction=True)


def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: MaskLike | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
    seed: int | Generator | None = None,
) -> Tensor:
    """Return softmax(scale * query @ key^T + mask) @ value.

    Keys and values may have fewer heads than queries if the number divides the query heads: each
    serves a group of consecutive query heads. If there are fewer queries than keys, the last query
    is at the last key: query i is at position i + keys - queries. A query that may attend to no key
    returns zeros.

    Args:
        query: (..., heads, queries, features).
        key: (..., key heads, keys, features).
        value: (..., key heads, keys, value features).
        mask: Broadcasts to (..., heads, queries, keys): bools, True where a query may attend, or
            numbers to add to the scores.
        causal: Whether a query attends only to keys at its own position and before.
        window: Attend only to keys less than `window` positions away. Default: no limit.
        scale: Factor of the scores. Default: 1 / sqrt(features).
        softcap: Limit c of the scaled scores s, which become c * tanh(s / c) before the mask is
            applied. Default: no limit.
        dropout: Probability of zeroing an attention weight, in [0, 1].
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.

    Returns:
        Tensor of shape (..., heads, queries, value features).
    """
    if window is not None and window < 1:
        raise ArgumentError(
            f"scaled_dot_product_attention: window must be at least 1; got {window}"
        )
    if not 0 <= dropout <= 1:
        raise ArgumentError(
            f"scaled_dot_product_attention: dropout must be in [0, 1]; got {dropout}"
        )
    if softcap is not None and not softcap > 0:
        raise ArgumentError(
            f"scaled_dot_product_attention: softcap must be positive; got {softcap}"
        )
    options: dict[str, Any] = {"causal": causal, "window": window, "scale": scale}
    if dropout == 0 and softcap is None:
        return attend(query, key, value, mask, **options)
    options |= {"softcap": softcap, "rate": dropout, "seed": seed}
    return attend_with_dropout(query, key, value, mask, **options)


@composite(rule=ATTENTION)
@in_float32
def attend(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: MaskLike | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return `scaled_dot_product_attention` without dropout.

    Args:
        query: (..., heads, queries, features).
        key: (..., key heads, keys, features).
        value: (..., key heads, keys, value features).
        mask: Broadcasts to (..., heads, queries, keys).
        causal: Whether a query attends only to keys at its own position and before.
        window: Attend only to keys less than `window` positions away.
        scale: Factor of the scores. Default: 1 / sqrt(features).
    """
    if key.shape[:-1] != value.shape[:-1]:
        raise ShapeError(
            f"scaled_dot_product_attention: key has shape {key.shape} and value {value.shape}; "
            "they must agree in all axes but the last"
        )
    key, value = spread_heads(query, key), spread_heads(query, value)
    return ops.matmul(attention_weights(query, key, mask, causal, window, scale), value)


@composite(rule=ATTENTION)
@in_float32
def attend_with_dropout(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    mask: MaskLike | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    rate: float = 0.0,
    seed: int | Generator | None = None,
) -> Tensor:
    """Return `scaled_dot_product_attention` with dropout of the weights or a limit of the scores.

    Args:
        query: (..., heads, queries, features).
        key: (..., key heads, keys, features).
        value: (..., key heads, keys, value features).
        mask: Broadcasts to (..., heads, queries, keys).
        causal: Whether a query attends only to keys at its own position and before.
        window: Attend only to keys less than `window` positions away.
        scale: Factor of the scores. Default: 1 / sqrt(features).
        softcap: Limit of the scaled scores. Default: no limit.
        rate: Probability of zeroing an attention weight.
        seed: Integer or `Generator` for a reproducible draw. Default: the backend's generator.
    """
    key, value = spread_heads(query, key), spread_heads(query, value)
    weights = attention_weights(query, key, mask, causal, window, scale, softcap)
    return ops.matmul(drop(weights, rate, seed=seed) if rate else weights, value)


def spread_heads(query: Tensor, shared: Tensor) -> Tensor:
    """Return keys or values with each head repeated for the query heads it serves."""
    if query.ndim < 2 or query.ndim != shared.ndim:
        raise ShapeError(
            f"attention: query has shape {query.shape} and key or value {shared.shape}; "
            "expected (..., heads, time, features) with equally many axes"
        )
    if query.ndim == 2 or query.shape[-3] == shared.shape[-3]:
        return shared
    if shared.shape[-3] == 0 or query.shape[-3] % shared.shape[-3]:
        raise ShapeError(
            f"attention: the number of query heads ({query.shape[-3]}) must be divisible by the "
            f"number of key heads ({shared.shape[-3]})"
        )
    return ops.repeat(shared, query.shape[-3] // shared.shape[-3], axis=-3)


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    causal: bool,
    window: int | None,
    scale: float | None,
    softcap: float | None = None,
) -> Tensor:
    """Return softmax(scale * query @ key^T + mask), zeros for a query that sees no key."""
    scale = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = ops.matmul(query, ops.matrix_transpose(key)) * scale
    if softcap is not None:
        scores = softcap * ops.tanh(scores / softcap)
    allowed = _band(scores, causal, window)
    if mask is not None and mask.dtype is not bool_:
        scores = scores + ops.astype(mask, scores.dtype)
    elif mask is not None:
        allowed = mask if allowed is None else ops.logical_and(allowed, mask)
    if allowed is not None:
        scores = ops.where(allowed, scores, -math.inf)
    if (mask is None and allowed is None) or key.shape[-2] == 0:
        return softmax(scores)
    blind = ops.max(scores, axis=-1, keepdims=True) == -math.inf
    return ops.where(blind, 0.0, softmax(ops.where(blind, 0.0, scores)))


def _band(scores: Tensor, causal: bool, window: int | None) -> Tensor | None:
    """Return where a query may attend to a key by position, (queries, keys); None if everywhere."""
    if not scores.size or not (causal or window is not None):
        return None
    allowed = ops.ones_like(scores[(0,) * (scores.ndim - 2)], dtype=bool_)
    last = scores.shape[-1] - scores.shape[-2]  # the diagonal on which a query is at its key
    allowed = ops.tril(allowed, last if causal or window is None else last + window - 1)
    return allowed if window is None else ops.triu(allowed, last - window + 1)
