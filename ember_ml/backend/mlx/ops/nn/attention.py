"""Attention with MLX's fused kernel."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx

from ember_ml._core.errors import ShapeError


def attend(
    query: mx.array,
    key: mx.array,
    value: mx.array,
    mask: mx.array | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> mx.array:
    if query.ndim != key.ndim or query.ndim < 2 or key.shape[:-1] != value.shape[:-1]:
        raise ShapeError(
            f"query {query.shape}, key {key.shape} and value {value.shape} "
            "are not (..., heads, time, features)"
        )
    scale = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    shape = (*query.shape[:-1], value.shape[-1])
    mask, blind = _mask(query, key, mask, causal, window)
    query, key, value = _four_axes(query), _four_axes(key), _four_axes(value)
    out = mx.fast.scaled_dot_product_attention(query, key, value, scale=scale, mask=mask)
    out = out if len(shape) == 4 else out.reshape(shape)
    return out if blind is None else mx.where(blind, mx.array(0, out.dtype), out)


def _four_axes(x: mx.array) -> mx.array:
    """Return x with the shape (batch, heads, time, features)."""
    if x.ndim == 4:
        return x
    return x.reshape(-1, x.shape[-3] if x.ndim > 2 else 1, *x.shape[-2:])


def _mask(
    query: mx.array, key: mx.array, mask: mx.array, causal: bool, window: int | None
) -> tuple[Any, Any]:
    """Return the mask for MLX, and which queries may attend to no key (None if there are none)."""
    queries, keys = query.shape[-2], key.shape[-2]
    if mask is None and window is None and queries <= keys:
        return "causal" if causal else None, None
    if causal or window is not None:
        mask = _combined(mask, _band(queries, keys, causal, window))
    if mask is None:
        return None, None
    if mask.dtype == mx.bool_:
        blind = ~mx.any(mask, axis=-1, keepdims=True)
        mask = mask | blind
    else:
        mask = mask.astype(query.dtype)
        blind = mx.max(mask, axis=-1, keepdims=True) == -math.inf
        mask = mx.where(blind, mx.array(0, mask.dtype), mask)
    if query.ndim > 4:
        mask = mx.broadcast_to(mask, (*query.shape[:-3], *(1, 1, 1, *mask.shape)[-3:]))
        return _four_axes(mask), blind
    return mask, blind


def _band(queries: int, keys: int, causal: bool, window: int | None) -> mx.array:
    """Return where a query may attend to a key, by position."""
    behind = mx.arange(keys - queries, keys)[:, None] - mx.arange(keys)
    if window is None:
        return behind >= 0
    return (behind < window) & (behind >= 0 if causal else behind > -window)


def _combined(mask: mx.array, allowed: Any) -> mx.array:
    if mask is None:
        return allowed
    if mask.dtype == mx.bool_:
        return mask & allowed
    return mx.where(allowed, mask, mx.array(-math.inf, mask.dtype))
