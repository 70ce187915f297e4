"""Unique elements."""

from __future__ import annotations

from typing import Any

import torch


def _order(flat: Any) -> torch.Tensor:
    """Return the stable sorting order of the elements."""
    if not flat.is_complex():
        return torch.argsort(flat, stable=True)
    by_imag = torch.argsort(flat.imag, stable=True)
    return by_imag[torch.argsort(flat.real[by_imag], stable=True)]


def _starts(ordered: Any) -> torch.Tensor:
    """Return which elements of a sorted tensor differ from their predecessor."""
    first = torch.ones(min(len(ordered), 1), dtype=torch.bool, device=ordered.device)
    return torch.cat([first, ordered[1:] != ordered[:-1]])


def unique_all(x: torch.Tensor) -> Any:
    flat = x.detach().reshape(-1)
    order = _order(flat)
    starts = _starts(flat[order])
    indices = order[starts]
    inverse = torch.empty_like(order)
    inverse[order] = torch.cumsum(starts, 0) - 1
    counts = torch.bincount(inverse, minlength=len(indices))
    return flat[indices], indices, inverse.reshape(x.shape), counts


def unique_values(x: torch.Tensor) -> torch.Tensor:
    flat = x.detach().reshape(-1)
    ordered = flat[_order(flat)]
    return ordered[_starts(ordered)]


def unique_rows(x: torch.Tensor) -> Any:
    if x.is_complex():
        x = torch.view_as_real(x).flatten(1)
    if x.numel() == 0:
        inverse = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
        return inverse[:1], inverse, torch.full_like(inverse[:1], x.shape[0])
    _, inverse, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    order = torch.argsort(inverse, stable=True)
    return order[torch.cumsum(counts, 0) - counts], inverse, counts
