"""The parts of complex numbers, element by element."""

from __future__ import annotations

import torch
from torch import angle as angle
from torch import conj as conj
from torch import real as real


def imag(x: torch.Tensor) -> torch.Tensor:
    """The zeros of a real tensor have a gradient, which is zero."""
    if x.is_complex():
        return torch.imag(x)
    return x.masked_fill(torch.ones((), dtype=torch.bool, device=x.device), 0)
