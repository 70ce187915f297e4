"""Norms."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.axes import listed


def vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """(sum |x|^ord)^(1 / ord) over the axes."""
    if axis is not None and not isinstance(axis, int) and not listed(axis):
        return torch.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    return torch.linalg.vector_norm(x, ord, axis, keepdims)
