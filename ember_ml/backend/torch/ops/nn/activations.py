"""Activations."""

from __future__ import annotations

import torch
from torch import celu as celu
from torch import relu as relu
from torch import selu as selu
from torch.nn import functional as F
from torch.nn.functional import elu as elu
from torch.nn.functional import leaky_relu as leaky_relu
from torch.nn.functional import mish as mish
from torch.nn.functional import relu6 as relu6
from torch.nn.functional import silu as silu
from torch.nn.functional import softsign as softsign
from torch.nn.functional import tanhshrink as tanhshrink
from torch.nn.functional import threshold as threshold

__all__ = [
    *("celu", "elu", "gelu", "hard_shrink", "hardtanh"),
    *("leaky_relu", "mish", "relu", "relu6", "selu", "silu", "soft_shrink", "softsign"),
    *("tanhshrink", "threshold"),
]


def gelu(x: torch.Tensor, approximate: bool = False) -> torch.Tensor:
    return F.gelu(x, approximate="tanh" if approximate in (True, "tanh") else "none")


def hardtanh(x: torch.Tensor, min_value: float = -1.0, max_value: float = 1.0) -> torch.Tensor:
    return F.hardtanh(x, min_value, max_value)


def hard_shrink(x: torch.Tensor, threshold: float = 0.5) -> torch.Tensor:
    return F.hardshrink(x, threshold)


def soft_shrink(x: torch.Tensor, threshold: float = 0.5) -> torch.Tensor:
    return F.softshrink(x, threshold)
