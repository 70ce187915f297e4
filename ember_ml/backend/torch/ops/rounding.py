"""Rounding and clipping."""

from __future__ import annotations

import torch
from torch import ceil as ceil
from torch import floor as floor
from torch import fmax as fmax
from torch import fmin as fmin
from torch import maximum as maximum
from torch import minimum as minimum
from torch import trunc as trunc

from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.scalars import left, right


def round(x: torch.Tensor, decimals: int = 0) -> torch.Tensor:
    if x.is_complex():
        return torch.complex(round(x.real, decimals), round(x.imag, decimals))
    if x.is_floating_point():
        return torch.round(x, decimals=decimals)
    return x if decimals >= 0 else _round_integer(x, 10**-decimals)


def _round_integer(x: torch.Tensor, unit: int) -> torch.Tensor:
    low = torch.div(x, unit, rounding_mode="floor")
    rest = x - low * unit
    up = (rest > unit - rest) | ((rest == unit - rest) & (low % 2 == 1))
    return (low + up.to(x.dtype)) * unit


VARIANTS = Variants(
    right_scalars={
        "fmax": right(fmax),
        "fmin": right(fmin),
        "maximum": right(maximum),
        "minimum": right(minimum),
    },
    left_scalars={
        "fmax": left(fmax),
        "fmin": left(fmin),
        "maximum": left(maximum),
        "minimum": left(minimum),
    },
)
