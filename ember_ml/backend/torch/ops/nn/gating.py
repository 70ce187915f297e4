"""Gates."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ShapeError
from ember_ml._native.calls import Kernel
from ember_ml.backend.torch import kernels
from ember_ml.backend.torch.ops._kernel_calls import call, is_served, threads, with_adjoint
from ember_ml.backend.torch.ops.nn.normalization import rms_norm

_GATE, _ADJOINT = Kernel("silu_gate", "pppiiiii"), Kernel("silu_gate_adjoint", "pppppiiiiii")
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
    return _gated(*_as_rows(x).chunk(2, -1)).view(*x.shape[:-1], -1)


def _pull(g: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
    out = x.new_empty(x.shape)
    _pull_gated(g, *_as_rows(x).chunk(2, -1), *out.view(-1, x.shape[-1]).chunk(2, -1))
    return [out]


def silu_gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    if x.shape == gate.shape and x.ndim and is_served(x, gate, least=_SMALL):
        return with_adjoint(_run_gate, _pull_gate, _plain_gate, x, gate)
    return _plain_gate(x, gate)


def _plain_gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    return x * F.silu(gate)


def _run_gate(x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
    return _gated(_as_rows(gate), _as_rows(x)).view(x.shape)


def _pull_gate(g: torch.Tensor, x: torch.Tensor, gate: torch.Tensor) -> list[torch.Tensor]:
    of_x, of_gate = x.new_empty(x.shape), x.new_empty(x.shape)
    grads = (each.view(-1, x.shape[-1]) for each in (of_gate, of_x))
    _pull_gated(g, _as_rows(gate), _as_rows(x), *grads)
    return [of_x, of_gate]


def _as_rows(x: torch.Tensor) -> torch.Tensor:
    """Return the tensor as a matrix with contiguous rows, copied if the memory has no such rows."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()


def _gated(gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) * value of matrices with contiguous rows."""
    out = gate.new_empty(gate.shape)
    sizes = (*gate.shape, gate.stride(0), value.stride(0))
    call(_GATE, (gate, value, out), *sizes, threads(2 * gate.numel()))
    return out


def _pull_gated(
    g: torch.Tensor,
    gate: torch.Tensor,
    value: torch.Tensor,
    of_gate: torch.Tensor,
    of_value: torch.Tensor,
) -> None:
    """Write the gradients of the gate and the value, which have the same strides."""
    sizes = (*gate.shape, gate.stride(0), value.stride(0), of_gate.stride(0))
    arrays = (g.contiguous(), gate, value, of_gate, of_value)
    call(_ADJOINT, arrays, *sizes, threads(2 * gate.numel()))


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
        return rms_norm(silu_gate(x, gate), weight, eps)
    return silu_gate(rms_norm(x, weight, eps), gate)
