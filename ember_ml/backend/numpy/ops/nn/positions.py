"""Rotary position embeddings, by a C kernel."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, threads_for
from ember_ml.backend import native_heads
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.native import frame

_ROPE = Kernel("rope", "ppppiiiiiiiiiii")


def rope(
    x: np.ndarray,
    positions: np.ndarray | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> np.ndarray | None:
    if positions is not None or not native.is_served(x) or x.ndim < 2:
        return None
    turns = _turns(x.shape[-2], x.shape[-1], base, offset, frequencies, x.dtype.char)
    if turns is None:
        return None
    if x.ndim != 4 or x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)
    out = np.empty(x.shape, x.dtype)
    rows = x if x.ndim == 4 else x.reshape(1, -1, *x.shape[-2:])
    strides = [step // x.itemsize for step in rows.strides[:3]]
    addresses = [native.address(array) for array in (rows, *turns, out)]
    sizes = (*rows.shape[:3], x.shape[-1] // 2, int(bool(interleaved)))
    _ROPE(SUFFIXES[x.dtype.char], *addresses, *sizes, *strides, 0, 0, threads_for(x.size))
    return out


def rotary_heads(
    x: np.ndarray,
    num_heads: int,
    num_kv_heads: int | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    frequencies: Sequence[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    count = num_heads + 2 * num_kv_heads
    fits = x.ndim == 3 and min(num_heads, num_kv_heads) > 0 and x.shape[2] % (2 * count) == 0
    if not fits or not native.is_served(x):
        return None
    turns = _turns(x.shape[1], x.shape[2] // count, base, offset, frequencies, x.dtype.char)
    access = frame(x)
    if turns is None or access is None:
        return None
    batch, time, features = x.shape
    counts = num_heads, num_kv_heads, num_kv_heads
    query, key, value = parts = [
        np.empty((batch, time, heads, features // count), x.dtype).swapaxes(1, 2)
        for heads in counts
    ]
    native_heads.split(access, x, (*turns, 0), parts)
    return query, key, value


def rotary_heads_adjoint(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    *,
    base: float = 10000.0,
    offset: int = 0,
    frequencies: Sequence[float] | None = None,
) -> np.ndarray | None:
    parts = query, key, value
    if query.ndim != 4 or not native.is_served(*parts) or not _have_one_shape(parts):
        return None
    _, _, length, features = query.shape
    turns = _turns(length, features, base, offset, frequencies, query.dtype.char)
    access = frame(*parts)
    if turns is None or access is None:
        return None
    return native_heads.join(access, (*turns, 0), parts)


def _have_one_shape(parts: Sequence[np.ndarray]) -> bool:
    """Return whether the parts have the same axes except for the heads."""
    return len({(len(part), *part.shape[2:]) for part in parts}) == 1


def _turns(
    length: int,
    features: int,
    base: float,
    offset: int,
    frequencies: Sequence[float] | None,
    dtype: str,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the cosine and sine of the angles, (length, pairs); None if an argument is invalid."""
    pairs = features // 2
    is_plain = isinstance(base, (int, float)) and base > 0 and type(offset) is int
    if not is_plain or features % 2 or (frequencies is not None and len(frequencies) != pairs):
        return None
    rates = None if frequencies is None else tuple(frequencies)
    return _table(length, pairs, float(base), offset, rates, dtype)


@functools.lru_cache(maxsize=16)
def _table(
    length: int, pairs: int, base: float, offset: int, rates: tuple[float, ...] | None, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosine and sine of the angles, (length, pairs)."""
    if rates is None:
        rates = tuple(base ** (-pair / pairs) for pair in range(pairs))
    angles = (np.arange(length) + offset).astype(dtype)[:, None] * np.array(rates, dtype)
    return np.cos(angles), np.sin(angles)
