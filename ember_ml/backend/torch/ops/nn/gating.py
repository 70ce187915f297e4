"""Gates."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F


def glu(x: Any, axis: int = -1) -> Any:
    return F.glu(x, axis)


def swiglu(x: Any, axis: int = -1) -> Any:
    if x.shape[axis] % 2:
        raise ValueError(f"the length of axis {axis} must be even")
    first, second = x.chunk(2, axis)
    return F.silu(first) * second
