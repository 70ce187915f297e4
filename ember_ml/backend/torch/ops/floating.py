"""Signs, exponents and neighbors of floats."""

from __future__ import annotations

import torch
from torch import copysign as copysign
from torch import frexp as frexp
from torch import signbit as signbit

from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.ops._scalars import left, right


def nan_to_num(
    x: torch.Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> torch.Tensor:
    """Compute complex numbers from their parts; torch's own has no gradient."""
    if nan is None:
        raise TypeError("nan must be a number")
    if not x.is_complex():
        return torch.nan_to_num(x, nan, posinf, neginf)
    parts = [torch.nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag)]
    return torch.complex(*parts)


def nextafter(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(x.detach(), y.detach())  # torch passes gradients to x


def ldexp(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """Scale in two steps; the power may overflow where the product does not."""
    wide = x if x.dtype is torch.float64 else x.float()
    limit = 2200 if wide.dtype is torch.float64 else 300
    exponent = torch.clamp(exponent.to(torch.int64), -limit, limit)
    half = torch.div(exponent, 2, rounding_mode="floor")
    first, second = (torch.exp2(part.to(wide.dtype)) for part in (half, exponent - half))
    return (wide * first * second).to(x.dtype)


VARIANTS = Variants(
    right_scalars={"copysign": right(copysign), "nextafter": right(nextafter)},
    left_scalars={"copysign": left(copysign), "nextafter": left(nextafter)},
)
