"""Dynamic slices: fixed size, start given as a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def _mesh(x: torch.Tensor, starts: Any, sizes: Any) -> tuple[Any, ...]:
    """Return the indices of the slice along each axis, shaped to broadcast."""
    lengths = torch.tensor(x.shape, device=x.device)
    starts = torch.where(starts < 0, starts + lengths, starts)
    starts = starts.clamp(lengths * 0, lengths - torch.tensor(sizes, device=x.device))
    mesh = []
    for axis, size in enumerate(sizes):
        shape = [1] * x.ndim
        shape[axis] = size
        mesh.append((torch.arange(size, device=x.device) + starts[axis]).reshape(shape))
    return tuple(mesh)


def dynamic_slice(x: torch.Tensor, starts: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    return x[_mesh(x, starts, sizes)] if x.ndim else x


def dynamic_update_slice(
    x: torch.Tensor, update: torch.Tensor, starts: torch.Tensor
) -> torch.Tensor:
    if x.ndim == 0:
        return torch.where(torch.ones((), dtype=torch.bool, device=x.device), update, x)
    return x.index_put(_mesh(x, starts, update.shape), update)
