"""Casts."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.numpy import cast, to_device


def astype(
    x: np.ndarray, dtype: np.dtype, *, copy: bool = True, device: str | None = None
) -> np.ndarray:
    if device is not None:
        to_device(x, device)
    if x.dtype == dtype:
        return np.array(x) if copy else x
    return cast(x, dtype)
