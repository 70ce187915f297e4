"""Counts of values."""

from __future__ import annotations

import torch


def bincount(
    x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor:
    """Counts, or sums of weights."""
    if weights is None:
        return torch.bincount(x, minlength=minlength)
    target = weights.dtype if weights.is_floating_point() else torch.float32
    wide = weights if weights.dtype is torch.float64 else weights.float()
    out = torch.bincount(x, wide.detach(), minlength)
    if weights.requires_grad:  # of which bincount knows nothing
        out = torch.zeros_like(out).index_add(0, x.long(), wide)
    return out.to(target)
