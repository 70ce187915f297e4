"""Elementwise comparisons, tests and logic."""

from __future__ import annotations

import torch
from torch import eq as equal
from torch import greater as greater
from torch import greater_equal as greater_equal
from torch import isfinite as isfinite
from torch import isinf as isinf
from torch import isnan as isnan
from torch import isneginf as isneginf
from torch import isposinf as isposinf
from torch import isreal as isreal
from torch import less as less
from torch import less_equal as less_equal
from torch import logical_and as logical_and
from torch import logical_not as logical_not
from torch import logical_or as logical_or
from torch import logical_xor as logical_xor
from torch import not_equal as not_equal

from ember_ml.backend.interface import Variants


def isclose(
    x: torch.Tensor,
    y: torch.Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> torch.Tensor:
    if not (rtol >= 0 and atol >= 0):
        raise ValueError("the tolerances must not be negative")
    if x.is_floating_point() or x.is_complex():
        return torch.isclose(x, y, rtol, atol, equal_nan)
    x, y = x.to(torch.int64), y.to(torch.int64)
    wrapped = torch.maximum(x, y) - torch.minimum(x, y)
    distance = wrapped.double() + torch.where(wrapped < 0, 2.0**64, 0.0)
    return distance <= atol + rtol * y.double().abs()


def allclose(
    x: torch.Tensor,
    y: torch.Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> torch.Tensor:
    return torch.all(isclose(x, y, rtol, atol, equal_nan))


def array_equal(x: torch.Tensor, y: torch.Tensor, equal_nan: bool = False) -> torch.Tensor:
    if x.shape != y.shape:
        return torch.zeros((), dtype=torch.bool, device=x.device)
    same = x == y
    return torch.all(same | ((x != x) & (y != y)) if equal_nan else same)


def isin(x: torch.Tensor, elements: torch.Tensor, invert: bool = False) -> torch.Tensor:
    if x.is_complex():
        contained = torch.any(x[..., None] == elements.reshape(-1), dim=-1)
        return ~contained if invert else contained
    if x.dtype is torch.bool:
        x, elements = x.to(torch.uint8), elements.to(torch.uint8)
    return torch.isin(x, elements, invert=invert)


VARIANTS = Variants(
    right_scalars={
        "equal": equal,
        "greater": greater,
        "greater_equal": greater_equal,
        "less": less,
        "less_equal": less_equal,
        "not_equal": not_equal,
    },
    left_scalars={
        "equal": lambda s, t: torch.eq(t, s),
        "greater": lambda s, t: torch.less(t, s),
        "greater_equal": lambda s, t: torch.less_equal(t, s),
        "less": lambda s, t: torch.greater(t, s),
        "less_equal": lambda s, t: torch.greater_equal(t, s),
        "not_equal": lambda s, t: torch.not_equal(t, s),
    },
)
