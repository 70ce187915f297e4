"""Gates."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops.nn.normalization import rms_norm


def glu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return F.glu(x, axis)


def swiglu(x: torch.Tensor, axis: int = -1) -> torch.Tensor:
    if x.shape[axis] % 2:
        raise ValueError(f"the length of axis {axis} must be even")
    first, second = x.chunk(2, axis)
    return F.silu(first) * second


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
