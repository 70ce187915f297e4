"""Sorting."""

from __future__ import annotations

from typing import Any

import torch


def _check_axis(x: torch.Tensor) -> None:
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")


def sort(
    x: torch.Tensor, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> torch.Tensor:
    _check_axis(x)
    return torch.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(
    x: torch.Tensor, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> torch.Tensor:
    _check_axis(x)
    return torch.argsort(x, dim=axis, descending=descending, stable=stable)


def topk(
    x: torch.Tensor, k: int, axis: int = -1, *, largest: bool = True, sorted: bool = True
) -> Any:
    """Return the top k; torch lacks it for bools."""
    _check_axis(x)
    if x.dtype is torch.bool:
        values, indices = torch.topk(x.byte(), k, axis, largest, sorted)
        return values.bool(), indices
    return torch.topk(x, k, axis, largest, sorted)


def searchsorted(
    x1: torch.Tensor, x2: torch.Tensor, sorter: torch.Tensor | None = None, *, side: str = "left"
) -> torch.Tensor:
    """Search in a sorted vector; torch's own fails with NaNs."""
    if x1.ndim != 1:
        raise ValueError(f"x1 must be a vector; its shape is {tuple(x1.shape)}")
    x1 = x1.contiguous() if sorter is None else x1[sorter.long()]
    x2 = x2.contiguous()  # torch warns about other layouts
    if not x1.is_floating_point():
        return torch.searchsorted(x1, x2, side=side)
    numbers = torch.sum(~torch.isnan(x1))
    positions = torch.searchsorted(x1.nan_to_num(torch.inf, torch.inf, -torch.inf), x2, side=side)
    beyond = numbers if side == "left" else x1.numel()
    return torch.where(torch.isnan(x2), beyond, torch.minimum(positions, numbers))
