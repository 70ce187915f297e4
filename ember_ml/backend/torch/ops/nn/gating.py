"""Gates."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def glu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return F.glu(x, axis)


def swiglu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    if x.shape[axis] % 2:
        raise ValueError(f"the length of axis {axis} must be even")
    first, second = x.chunk(2, axis)
    return F.silu(first) * second
