"""Counts of values."""

from __future__ import annotations

import torch

from ember_ml.backend.torch.nesting import is_tracked


def bincount(
    x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor:
    """Return the counts, or the sums of the weights."""
    if weights is None:
        return torch.bincount(x, minlength=minlength)
    target = weights.dtype if weights.is_floating_point() else torch.float32
    wide = weights if weights.dtype is torch.float64 else weights.float()
    out = torch.bincount(x, wide.detach(), minlength)
    if is_tracked(weights):  # bincount has no gradient for the weights
        out = torch.zeros_like(out).index_add(0, x.long(), wide)
    return out.to(target)
