"""Dynamic slices: fixed size, start given as a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def _key(shape: tuple[int, ...], starts: np.ndarray, sizes: Sequence[int]) -> tuple[slice, ...]:
    lengths, starts = np.array(shape, np.int64), starts.astype(np.int64)
    first = np.where(starts < 0, starts + lengths, starts)
    first = np.clip(first, 0, lengths - np.array(sizes, np.int64))
    return tuple(
        slice(start, start + size) for start, size in zip(first.tolist(), sizes, strict=True)
    )


def dynamic_slice(x: np.ndarray, starts: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    return np.asarray(x)[_key(x.shape, starts, sizes)]


def dynamic_update_slice(x: np.ndarray, update: np.ndarray, starts: np.ndarray) -> np.ndarray:
    out = np.array(x)
    out[_key(x.shape, starts, update.shape)] = update
    return out
