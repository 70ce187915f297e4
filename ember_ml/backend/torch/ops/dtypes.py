"""Casts."""

from __future__ import annotations

import torch

from ember_ml.backend.torch import cast, to_device


def astype(
    x: torch.Tensor, dtype: torch.dtype, *, copy: bool = True, device: str | None = None
) -> torch.Tensor:
    out = cast(x, dtype)
    if device is not None:
        out = to_device(out, device)
    return out.clone() if copy and out is x else out
