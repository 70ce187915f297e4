"""Casts."""

from __future__ import annotations

import mlx.core as mx

from ember_ml.backend.mlx import cast, to_device


def astype(
    x: mx.array, dtype: mx.Dtype, *, copy: bool = True, device: str | None = None
) -> mx.array:
    """Cast; MLX arrays are immutable, so no copy is needed."""
    out = x if x.dtype == dtype else cast(x, dtype)
    return out if device is None else to_device(out, device)
