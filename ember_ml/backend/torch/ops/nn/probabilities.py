"""Softmax."""

from __future__ import annotations

import torch
from torch import softmax as _softmax


def softmax(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return _softmax(x, axis)


def log_softmax(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return torch.log_softmax(x, axis)
