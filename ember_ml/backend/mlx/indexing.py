"""Reading and writing an index of an MLX array."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ember_ml._core.errors import ShapeError


def _is_mask(part: Any) -> bool:
    return isinstance(part, mx.array) and part.dtype == mx.bool_


def _without_masks(key: Any) -> Any:
    """Masks, whose result depends on values, become integer indices found on the host."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if not any(map(_is_mask, parts)):
        return key
    out: list[Any] = []
    for part in parts:
        if not _is_mask(part):
            out.append(part)
        elif part.ndim == 0:
            out.extend([None, mx.array(np.flatnonzero(np.array(part)))])
        else:
            out.extend(mx.array(found) for found in np.nonzero(np.array(part)))
    return tuple(out)


def getitem(data: Any, key: Any) -> Any:
    """Read an index."""
    return data[_without_masks(key)]
