"""Slices of fixed size whose place may be a value on the device."""

from __future__ import annotations

from typing import Any

import numpy as np


def _key(shape: Any, starts: Any, sizes: Any) -> tuple[slice, ...]:
    lengths = np.array(shape, np.int64)
    first = np.where(starts < 0, starts + lengths, starts)
    first = np.clip(first, 0, lengths - np.array(sizes, np.int64))
    return tuple(
        slice(start, start + size) for start, size in zip(first.tolist(), sizes, strict=True)
    )


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    return np.asarray(x)[_key(x.shape, starts, sizes)]


def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any:
    out = np.array(x)
    out[_key(x.shape, starts, update.shape)] = update
    return out
