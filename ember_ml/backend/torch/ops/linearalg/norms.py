"""Norms."""

from __future__ import annotations

import torch

from ember_ml.backend.axes import listed


def vector_norm(
    x: torch.Tensor,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float | str = 2,
) -> torch.Tensor:
    if axis is not None and not isinstance(axis, int) and not listed(axis):
        return torch.linalg.vector_norm(x.unsqueeze(-1), ord, -1)
    if axis is not None and not x.ndim:
        raise IndexError("a 0-d tensor has no axes")
    return torch.linalg.vector_norm(x, ord, axis, keepdims)
