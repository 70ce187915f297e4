"""Attention in blocks of queries, so that the full score matrix is never stored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml._core.errors import ShapeError
from ember_ml.backend.numpy.ops.nn._kernel import kernel

_SCORES = 2**21  # held at a time


@kernel
def attend(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> np.ndarray:
    shape = (*query.shape[:-1], value.shape[-1])
    if mask is not None:
        mask = np.broadcast_to(mask, (*mask.shape[:-2], query.shape[-2], key.shape[-2]))
    query, key, value, mask = _grouped(query, key, value, mask)
    query = query * (1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else float(scale))
    queries, keys = query.shape[-2], key.shape[-2]
    out = np.zeros((*query.shape[:-1], value.shape[-1]), query.dtype)
    step = max(16, _SCORES // max(math.prod(query.shape[:-2]) * keys, 1))
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        seen = _seen(rows, keys - queries, keys, causal, window)
        scores = np.matmul(query[..., rows, :], key[..., seen, :].swapaxes(-1, -2))
        _forbid(scores, np.arange(rows.start, rows.stop) + keys - queries, seen, causal, window)
        if mask is not None:
            _apply(scores, mask[..., rows, seen])
        np.matmul(_softmax(scores), value[..., seen, :], out=out[..., rows, :])
    return out.reshape(shape)


def _grouped(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray
) -> tuple[Any, Any, Any, Any]:
    """Add an axis for the query heads that share a key head."""
    if query.ndim != key.ndim or query.ndim < 2 or key.shape[:-1] != value.shape[:-1]:
        raise ShapeError(
            f"query {query.shape}, key {key.shape} and value {value.shape} "
            "are not (..., heads, time, features)"
        )
    if query.ndim == 2 or query.shape[-3] == key.shape[-3]:
        return query, key, value, mask
    heads, shared = query.shape[-3], key.shape[-3]
    if shared == 0 or heads % shared:
        raise ShapeError(f"{heads} query heads must be a multiple of {shared} key heads")
    if mask is not None and mask.ndim > 2:
        split = (1, 1) if mask.shape[-3] == 1 else (shared, heads // shared)
        mask = mask.reshape(*mask.shape[:-3], *split, *mask.shape[-2:])
    query = query.reshape(*query.shape[:-3], shared, heads // shared, *query.shape[-2:])
    return query, key[..., None, :, :], value[..., None, :, :], mask


def _seen(rows: slice, shift: int, keys: int, causal: bool, window: int | None) -> slice:
    """Return the range of keys that any of the queries may attend to."""
    first = 0 if window is None else rows.start + shift - window + 1
    last = keys if window is None else rows.stop + shift + window - 1
    last = min(last, rows.stop + shift) if causal else last
    first = min(max(first, 0), keys)
    return slice(first, min(max(last, first), keys))


def _forbid(scores: Any, positions: Any, seen: slice, causal: bool, window: int | None) -> None:
    """Set the scores of keys outside the causal window to -inf."""
    if not causal and window is None:
        return
    behind = positions[:, None] - np.arange(seen.start, seen.stop)
    forbidden = behind < 0 if causal else np.zeros(behind.shape, bool)
    if window is not None:
        forbidden |= np.abs(behind) >= window
    np.copyto(scores, -np.inf, where=forbidden)


def _apply(scores: Any, mask: np.ndarray) -> None:
    if mask.dtype == np.bool_:
        np.copyto(scores, -np.inf, where=~mask)
    else:
        scores += mask.astype(scores.dtype, copy=False)


def _softmax(scores: Any) -> np.ndarray:
    """Apply softmax in place; a row of -inf becomes zeros."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    scores -= np.where(top == -np.inf, 0.0, top).astype(scores.dtype)
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    scores /= np.where(total == 0, 1.0, total).astype(scores.dtype)
    return scores
