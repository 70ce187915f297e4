"""How often values occur."""

from __future__ import annotations

from typing import Any

import torch


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Counts, or sums of weights."""
    if weights is None:
        return torch.bincount(x, minlength=minlength)
    target = weights.dtype if weights.is_floating_point() else torch.float32
    wide = weights if weights.dtype is torch.float64 else weights.float()
    out = torch.bincount(x, wide.detach(), minlength)
    if weights.requires_grad:  # of which bincount knows nothing
        out = torch.zeros_like(out).index_add(0, x.long(), wide)
    return out.to(target)
