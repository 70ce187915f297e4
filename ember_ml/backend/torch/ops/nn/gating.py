"""Gates."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml._native.calls import Kernel
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops._kernel_calls import call, is_served, threads, with_adjoint
from ember_ml.backend.torch.ops.nn.normalization import rms_norm

_SWIGLU, _ADJOINT = Kernel("swiglu", "ppiii"), Kernel("swiglu_adjoint", "pppiii")
_SMALL = 1 << 12


def glu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return F.glu(x, axis)


def swiglu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    if x.shape[axis] % 2:
        raise ValueError(f"the length of axis {axis} must be even")
    if axis in (-1, x.ndim - 1) and is_served(x, least=_SMALL):
        return with_adjoint(_run, _pull, _plain, x)
    return _plain(x, axis)


def _plain(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    first, second = x.chunk(2, axis)
    return F.silu(first) * second


def _run(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    half = x.shape[-1] // 2
    out = x.new_empty(*x.shape[:-1], half)
    call(_SWIGLU, (x, out), out.numel() // half, half, threads(x.numel()))
    return out


def _pull(g: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    g, x = g.contiguous(), x.contiguous()
    out, half = torch.empty_like(x), g.shape[-1]
    call(_ADJOINT, (g, x, out), g.numel() // half, half, threads(x.numel()))
    return [out]


def gated_rms_norm(
    x: torch.Tensor,
    gate: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    gate_first: bool = False,
) -> torch.Tensor:
    if x.shape != gate.shape:
        raise ShapeError(
            f"gated_rms_norm: x has shape {tuple(x.shape)} and gate {tuple(gate.shape)}; "
            "expected one shape"
        )
    if kernels.serves(x, gate, weight) and kernels.gated_rms_norm.takes(x, weight):
        return kernels.gated_rms_norm.apply(x, gate, weight, float(eps), gate_first)
    if gate_first:
        return rms_norm(x * F.silu(gate), weight, eps)
    return rms_norm(x, weight, eps) * F.silu(gate)
