"""Rotary position embeddings, by a C kernel."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, threads_for
from ember_ml.backend.numpy import kernel_calls as native

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
    is_plain = isinstance(base, (int, float)) and base > 0 and type(offset) is int
    if not is_plain or positions is not None or not native.is_served(x) or x.ndim < 2:
        return None
    length, pairs = x.shape[-2], x.shape[-1] // 2
    if x.shape[-1] % 2 or (frequencies is not None and len(frequencies) != pairs):
        return None
    rates = None if frequencies is None else tuple(frequencies)
    cos, sin = _turns(length, pairs, float(base), offset, rates, x.dtype.char)
    if x.ndim != 4 or x.strides[-1] != x.itemsize:
        x = np.ascontiguousarray(x)
    out = np.empty(x.shape, x.dtype)
    rows = x if x.ndim == 4 else x.reshape(1, -1, length, 2 * pairs)
    strides = [step // x.itemsize for step in rows.strides[:3]]
    addresses = [native.address(array) for array in (rows, cos, sin, out)]
    sizes = (*rows.shape[:3], pairs, int(bool(interleaved)))
    _ROPE(SUFFIXES[x.dtype.char], *addresses, *sizes, *strides, 0, 0, threads_for(x.size))
    return out


@functools.lru_cache(maxsize=16)
def _turns(
    length: int, pairs: int, base: float, offset: int, rates: tuple[float, ...] | None, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosine and sine of the angles, (length, pairs)."""
    if rates is None:
        rates = tuple(base ** (-pair / pairs) for pair in range(pairs))
    angles = (np.arange(length) + offset).astype(dtype)[:, None] * np.array(rates, dtype)
    return np.cos(angles), np.sin(angles)
