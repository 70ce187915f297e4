"""Softmax."""

from __future__ import annotations

from typing import Any

import torch
from torch import softmax as _softmax


def softmax(x: Any, axis: int = -1) -> Any:
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return _softmax(x, axis)


def log_softmax(x: Any, axis: int = -1) -> Any:
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return torch.log_softmax(x, axis)
