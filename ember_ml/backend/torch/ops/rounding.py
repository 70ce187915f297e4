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

from ember_ml.backend.integers import round_to_decimals
from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.ops._scalars import left, right


def round(x: torch.Tensor, decimals: int = 0) -> torch.Tensor:
    if x.is_complex():
        return torch.complex(round(x.real, decimals), round(x.imag, decimals))
    if x.is_floating_point():
        return torch.round(x, decimals=decimals)
    limits = torch.iinfo(x.dtype)
    return round_to_decimals(x, decimals, (limits.min, limits.max), lambda n: x.new_tensor(n))


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
