"""Casting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.numpy import cast, to_device


def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype."""
    if device is not None:
        to_device(x, device)
    if x.dtype == dtype:
        return np.array(x) if copy else x
    return cast(x, dtype)
