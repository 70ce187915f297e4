"""Parts of complex numbers."""

from __future__ import annotations

import torch
from torch import angle as angle
from torch import conj as conj
from torch import real as real


def imag(x: torch.Tensor) -> torch.Tensor:
    """Return zeros with a graph, so that the gradient is zero."""
    if x.is_complex():
        return torch.imag(x)
    return x.masked_fill(torch.ones((), dtype=torch.bool, device=x.device), 0)
