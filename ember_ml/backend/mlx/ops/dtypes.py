"""Casting."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.mlx import cast, to_device


def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    """The array in another dtype; MLX arrays are values, so that a copy is not needed."""
    out = x if x.dtype == dtype else cast(x, dtype)
    return out if device is None else to_device(out, device)
