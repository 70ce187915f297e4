"""Special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import digamma as digamma
from torch import erf as erf
from torch import erfc as erfc
from torch import erfinv as erfinv
from torch import lgamma as lgamma
from torch import logit as logit
from torch import sigmoid as sigmoid
from torch import xlogy as xlogy
from torch.special import entr as entr
from torch.special import xlog1py as xlog1py

from ember_ml._native.calls import Kernel
from ember_ml.backend.interface import Variants
from ember_ml.backend.torch.ops._kernel_calls import call, dense, is_served, threads, with_adjoint
from ember_ml.backend.torch.ops._scalars import left, right

_SOFTPLUS = Kernel("softplus", "ppii")
_LARGE = 1 << 15
"""Number of elements from which the kernel of softplus is faster."""


def _in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that lacks half precision."""

    def kernel(x: torch.Tensor) -> torch.Tensor:
        if x.dtype in (torch.float16, torch.bfloat16):
            return function(x.float()).to(x.dtype)
        return function(x)

    return kernel


log_sigmoid = torch.nn.functional.logsigmoid
log_ndtr = _in_float32(torch.special.log_ndtr)
ndtri = _in_float32(torch.special.ndtri)


def ndtr(x: torch.Tensor) -> torch.Tensor:
    """Replace torch's own, which is zero in the lower tail."""
    return torch.erfc(x * -math.sqrt(0.5)) / 2


def i0(x: torch.Tensor) -> torch.Tensor:
    """Replace torch's own, which is NaN at infinity."""
    return torch.where(torch.isinf(x), x.abs(), torch.i0(x))


def i1(x: torch.Tensor) -> torch.Tensor:
    """Replace torch's own, which is NaN at infinity and lacks half precision."""
    return torch.where(torch.isinf(x), x, _in_float32(torch.special.i1)(x))


def polygamma(x: torch.Tensor, n: int = 1) -> torch.Tensor:
    """Replace torch's own; its trigamma has only nine digits."""
    if n == 1:
        return _in_float32(lambda wide: torch.special.zeta(2.0, wide))(x)
    return torch.polygamma(n, x)


def betaln(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)


def softplus(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    """Use a higher threshold for the linear part; torch's default of 20 is too low for float64."""
    if beta == 1.0 and is_served(x, least=_LARGE):
        return with_adjoint(_run_softplus, _pull_softplus, _plain_softplus, x)
    return _plain_softplus(x, beta)


def _plain_softplus(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return torch.nn.functional.softplus(x, beta, threshold=50.0)


def _run_softplus(x: torch.Tensor) -> torch.Tensor:
    x, out = dense(x)
    call(_SOFTPLUS, (x, out), x.numel(), threads(x.numel()))
    return out


def _pull_softplus(g: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    return [torch.sigmoid(x).mul_(g)]


VARIANTS = Variants(
    right_scalars={"xlogy": xlogy, "xlog1py": xlog1py, "betaln": right(betaln)},
    left_scalars={"xlogy": xlogy, "xlog1py": xlog1py, "betaln": left(betaln)},
)
