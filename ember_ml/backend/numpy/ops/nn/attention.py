"""Attention in blocks of queries, so that the full score matrix is never stored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ember_ml._core.errors import ShapeError
from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.ops.nn._kernel import kernel

_SCORES = 2**21  # held at a time
_CACHED = 2**18  # scores that fit a cache
_WEIGHTS, _ADJOINT = Kernel("attention_weights", "piiiriii"), Kernel("attention_adjoint", "ppiiri")


def attend(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> np.ndarray | None:
    if query.ndim == key.ndim and query.shape[:-3] != key.shape[:-3]:
        return None  # examples that share queries or keys
    return _attend_each(query, key, value, mask, causal, window, scale)


@kernel
def _attend_each(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None,
    causal: bool,
    window: int | None,
    scale: float | None,
) -> np.ndarray:
    shape = (*query.shape[:-1], value.shape[-1])
    if mask is not None:
        mask = np.broadcast_to(mask, (*mask.shape[:-2], query.shape[-2], key.shape[-2]))
    query, key, value, mask = _grouped(query, key, value, mask)
    factor = 1.0 / math.sqrt(max(query.shape[-1], 1)) if scale is None else float(scale)
    if _is_served(query, key, value, mask):
        return _in_batches(query, key, value, mask, factor, causal, window).reshape(shape)
    query = query * factor
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


def _is_served(query: Any, key: Any, value: Any, mask: Any) -> bool:
    """Return whether the kernels take the arrays, and the scores of an example are not many."""
    scores = math.prod(query.shape[1:-1]) * key.shape[-2]
    return (
        native.is_served(query, key, value)
        and query.ndim > 2
        and 0 < scores <= _SCORES
        and query.shape[-1] > 0
        and value.shape[-1] > 0
        and (mask is None or mask.dtype in (np.bool_, query.dtype))
    )


def _chunks(query: Any, key: Any, mask: Any) -> list[tuple[slice, Any]]:
    """Return slices of the batch whose scores fit a cache, each with its part of the mask."""
    size = max(1, _CACHED // (math.prod(query.shape[1:-1]) * key.shape[-2]))
    parts = [slice(at, min(at + size, len(query))) for at in range(0, len(query), size)]
    if mask is None:
        return [(part, None) for part in parts]
    whole = np.broadcast_to(mask, (*query.shape[:-1], key.shape[-2]))
    return [(part, whole[part]) for part in parts]


def _attention_weights(
    query: Any, key: Any, mask: Any, factor: float, causal: bool, window: int | None
) -> np.ndarray:
    scores = np.matmul(query, key.swapaxes(-1, -2))
    if mask is not None:
        scores *= factor
        _apply(scores, mask)
        factor = 1.0
    queries, keys = scores.shape[-2:]
    suffix, threads = SUFFIXES[scores.dtype.char], threads_for(scores.size)
    options = (factor, int(causal), 0 if window is None else window, threads)
    _WEIGHTS(suffix, pointer(scores), scores.size // keys, queries, keys, *options)
    return scores


def _in_batches(
    query: Any, key: Any, value: Any, mask: Any, factor: float, causal: bool, window: int | None
) -> np.ndarray:
    """Return the attention of a few examples at a time."""
    out = np.empty((*query.shape[:-1], value.shape[-1]), query.dtype)
    for here, part in _chunks(query, key, mask):
        weights = _attention_weights(query[here], key[here], part, factor, causal, window)
        np.matmul(weights, value[here], out=out[here])
    return out


def attend_adjoint(g, query, key, value, mask=None, *, causal=False, window=None, scale=None):
    """Return the gradients of query, key and value; None if the kernels do not take them."""
    shapes = query.shape, key.shape, value.shape
    if query.ndim == key.ndim and query.shape[:-3] != key.shape[:-3]:
        return None
    if mask is not None:
        mask = np.broadcast_to(mask, (*mask.shape[:-2], query.shape[-2], key.shape[-2]))
    query, key, value, mask = _grouped(query, key, value, mask)
    if not _is_served(query, key, value, mask) or g.dtype != query.dtype:
        return None
    g = g.reshape(*query.shape[:-1], value.shape[-1])
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    grads = [np.empty(x.shape, x.dtype) for x in (query, key, value)]
    for here, part in _chunks(query, key, mask):
        q, k, v, g_ = query[here], key[here], value[here], g[here]
        weights = _attention_weights(q, k, part, factor, causal, window)
        slopes = np.matmul(g_, v.swapaxes(-1, -2))
        suffix, keys = SUFFIXES[q.dtype.char], weights.shape[-1]
        rows, threads = weights.size // keys, threads_for(weights.size)
        _ADJOINT(suffix, pointer(slopes), pointer(weights), rows, keys, factor, threads)
        np.matmul(slopes, k, out=grads[0][here])
        _add_groups(grads[1][here], slopes, q)
        _add_groups(grads[2][here], weights, g_)
    return tuple(grad.reshape(shape) for grad, shape in zip(grads, shapes, strict=True))


def _add_groups(out: np.ndarray, left: np.ndarray, right: np.ndarray) -> None:
    """Write left^T @ right, summed over the query heads that share a key head."""
    left = left.swapaxes(-1, -2)
    if out.shape[:-2] == left.shape[:-2]:
        np.matmul(left, right, out=out)
    else:
        np.sum(np.matmul(left, right), axis=-3, keepdims=True, out=out)
