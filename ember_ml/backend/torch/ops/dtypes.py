"""Casting."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.torch import cast, to_device


def astype(x: Any, dtype: Any, *, copy: bool = True, device: Any = None) -> Any:
    """The tensor in another dtype."""
    out = cast(x, dtype)
    if device is not None:
        out = to_device(out, device)
    return out.clone() if copy and out is x else out
