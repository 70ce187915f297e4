"""Joining and splitting."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import cat as _cat


def concat(arrays: Any, axis: int | None = 0) -> torch.Tensor:
    if axis is None:
        return torch.cat([x.reshape(-1) for x in arrays])
    ndim = arrays[0].ndim
    for x in arrays:  # torch ignores empty tensors of one axis
        if x.ndim != ndim:
            raise ValueError("the tensors must have the same number of axes")
    return _cat(arrays, axis)


def stack(arrays: Any, axis: int = 0) -> torch.Tensor:
    return torch.stack(arrays, axis)


def split_at(x: torch.Tensor, indices: Sequence[int], axis: int = 0) -> list[torch.Tensor]:
    bounds = (0, *indices, x.shape[axis])
    if any(low > high for low, high in itertools.pairwise(bounds)):
        return x.tensor_split(tuple(indices), axis)
    # The gradient of split is one concatenation; that of tensor_split sums arrays of mostly zeros.
    return x.split([high - low for low, high in itertools.pairwise(bounds)], axis)


def unstack(x: torch.Tensor, axis: int = 0) -> tuple[torch.Tensor, ...]:
    return x.unbind(axis)
