"""Linear projection, embedding, one-hot encoding."""

from __future__ import annotations

import operator

import torch
from torch.nn import functional as F
from torch.nn.functional import linear as linear

from ember_ml._core.errors import ArgumentTypeError


def embedding(weight: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    if indices.dtype not in (torch.int64, torch.int32):
        if indices.is_floating_point() or indices.is_complex() or indices.dtype is torch.bool:
            raise ArgumentTypeError(f"embedding: indices must be integers, not {indices.dtype}")
        indices = indices.long()
    if weight.ndim == 2 and not weight.is_complex():
        return F.embedding(indices, weight)
    return weight.index_select(0, indices.flatten()).reshape(*indices.shape, *weight.shape[1:])


def one_hot(
    x: torch.Tensor, num_classes: int, axis: int = -1, dtype: torch.dtype | None = None
) -> torch.Tensor:
    dtype = torch.float32 if dtype is None else dtype
    classes = torch.arange(operator.index(num_classes), device=x.device)
    return (x.unsqueeze(-1) == classes).to(dtype).movedim(-1, axis)
