"""Diagonals."""

from __future__ import annotations

from typing import Any

import torch


def diagonal(x: torch.Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> torch.Tensor:
    """Return a diagonal of the matrices in two axes."""
    if x.ndim < 2:
        raise ValueError("the shape must be that of matrices")
    return torch.diagonal(x, offset, axis1, axis2)


def diag_embed(x: torch.Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1) -> torch.Tensor:
    return torch.diag_embed(x, offset, axis1, axis2)


def _block_diag(tensors: list[Any]) -> torch.Tensor:
    return torch.block_diag(*tensors)
