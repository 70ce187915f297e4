"""The parts of complex numbers, element by element."""

from __future__ import annotations

from typing import Any

import torch
from torch import angle as angle
from torch import conj as conj
from torch import real as real


def imag(x: Any) -> Any:
    return torch.imag(x) if x.is_complex() else torch.zeros_like(x)
