"""Linear, embedding, one-hot."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F
from torch.nn.functional import linear as linear

from ember_ml._core.errors import ArgumentTypeError


def embedding(weight: Any, indices: Any) -> Any:
    if indices.dtype not in (torch.int64, torch.int32):
        if indices.is_floating_point() or indices.is_complex() or indices.dtype is torch.bool:
            raise ArgumentTypeError(f"embedding: indices must be integers, not {indices.dtype}")
        indices = indices.long()
    if weight.ndim == 2 and not weight.is_complex():
        return F.embedding(indices, weight)
    return weight.index_select(0, indices.flatten()).reshape(*indices.shape, *weight.shape[1:])


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> Any:
    dtype = torch.float32 if dtype is None else dtype
    classes = torch.arange(num_classes, device=x.device)
    return (x.unsqueeze(-1) == classes).to(dtype).movedim(-1, axis)
