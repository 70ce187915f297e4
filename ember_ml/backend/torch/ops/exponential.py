"""Exponentials, logarithms and roots."""

from __future__ import annotations

import math

import torch
from torch import exp as exp
from torch import exp2 as exp2
from torch import log as log
from torch import log2 as log2
from torch import log10 as log10
from torch import logaddexp as logaddexp
from torch import logaddexp2 as logaddexp2
from torch import rsqrt as rsqrt
from torch import sqrt as sqrt

from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.ops._scalars import left, right


def expm1(x: torch.Tensor) -> torch.Tensor:
    """Compute complex numbers by parts; torch's own misses special cases of the standard."""
    if not x.is_complex():
        return torch.expm1(x)
    size, angle = x.real, x.imag
    real = torch.expm1(size) * torch.cos(angle) - 2 * torch.square(torch.sin(angle / 2))
    imaginary = torch.where(angle == 0, angle, torch.exp(size) * torch.sin(angle))
    endless = torch.isinf(size) & ~torch.isfinite(angle)
    real = torch.where(endless, torch.where(size > 0, math.inf, -1.0), real) + 0.0
    return torch.complex(real, torch.where(endless & (size < 0), 0.0, imaginary))


def log1p(x: torch.Tensor) -> torch.Tensor:
    """Use log(1 + x) for complex numbers, but |1 + x|**2 - 1 where that is exact."""
    if not x.is_complex():
        return torch.log1p(x)
    moved = torch.complex(x.real + 1, x.imag)
    size = torch.abs(moved)
    near = (size > 0.5) & (size < 2.0)
    excess = torch.where(near, x.real * (2 + x.real) + x.imag * x.imag, 0.0)
    close = torch.complex(torch.log1p(excess) / 2, torch.angle(moved))
    return torch.where(near, close, torch.log(moved))


def cbrt(x: torch.Tensor) -> torch.Tensor:
    """Compute x**(1/3), refined by one Newton step."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    size = wide.abs()
    regular = (size > 0) & torch.isfinite(size)
    base = torch.where(regular, size, 1.0)
    root = base ** (1 / 3)
    root = root - (root - base / (root * root)) / 3
    return torch.where(regular, torch.copysign(root, wide), wide).to(x.dtype)


VARIANTS = Variants(
    right_scalars={"logaddexp": right(logaddexp), "logaddexp2": right(logaddexp2)},
    left_scalars={"logaddexp": left(logaddexp), "logaddexp2": left(logaddexp2)},
)
