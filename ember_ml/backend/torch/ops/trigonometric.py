"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

import torch
from torch import acosh as acosh
from torch import asin as asin
from torch import asinh as asinh
from torch import atan as atan
from torch import atan2 as atan2
from torch import atanh as atanh
from torch import cos as cos
from torch import cosh as cosh
from torch import deg2rad as deg2rad
from torch import hypot as hypot
from torch import rad2deg as rad2deg
from torch import sin as sin
from torch import sinc as sinc
from torch import sinh as sinh
from torch import tan as tan

from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.ops._scalars import left, right


def acos(x: torch.Tensor) -> torch.Tensor:
    """Return the imaginary part with the opposite sign of the operand's, also at zero."""
    out = torch.acos(x)
    return torch.where(x == 0, torch.complex(out.real, -x.imag), out) if x.is_complex() else out


def tanh(x: torch.Tensor) -> torch.Tensor:
    """Preserve the sign of the imaginary part at the limits +1 and -1."""
    out = torch.tanh(x)
    if not x.is_complex():
        return out
    limit = torch.isinf(x.real) & torch.isfinite(x.imag)
    sign = torch.copysign(torch.zeros_like(x.imag), x.imag)
    return torch.complex(out.real, torch.where(limit, sign, out.imag))


VARIANTS = Variants(
    right_scalars={"atan2": right(atan2), "hypot": right(hypot)},
    left_scalars={"atan2": left(atan2), "hypot": left(hypot)},
)
