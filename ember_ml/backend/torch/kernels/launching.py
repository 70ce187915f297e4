"""Helpers of launches."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


def on_device(x: torch.Tensor) -> Any:
    """Return a context in which programs run on the device of a tensor."""
    return torch.cuda.device(x.device) if x.is_cuda else contextlib.nullcontext()


def cdiv(length: int, size: int) -> int:
    """Return the number of blocks of a size that cover a length."""
    return -(-length // size)
