"""Scan of spiking neurons without recurrent synapses as Triton kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ember_ml.backend.spiking import Operands, Options
from ember_ml.backend.torch.kernels.availability import serves as _serves
from ember_ml.backend.torch.kernels.launching import cdiv, on_device
from ember_ml.backend.torch.spiking import Saved

BLOCK = 128
_PARAMETERS = ("beta", "threshold", "alpha", "rho", "strength")


def serves(operands: Operands) -> bool:
    """Return whether the kernels take these operands: float32, without recurrent synapses.

    Args:
        operands: Arrays of the scan.
    """
    floats = operands[:-3]
    if operands.taps is not None or not operands.x.numel() or operands.x.dtype != torch.float32:
        return False
    return _serves(*floats) and (operands.mask is None or operands.mask.device == floats[0].device)


def run(
    operands: Operands, options: Options, save: bool
) -> tuple[tuple[Tensor, Tensor, Tensor], Saved]:
    """Return the results of `ember_ml.backend.torch.spiking.run`, the reference.

    Args:
        operands: Arrays of the scan.
        options: Options of the scan.
        save: Whether the arrays for the backward pass are needed; they are always stored.
    """
    x, state, beta, threshold, alpha, rho, strength, _, _, mask = operands
    arrays = x, state, beta, threshold, alpha, rho, strength, mask
    *outs, current, adaptation, active = forward(*arrays, options.reset, options.refractory)
    saved = Saved(
        None if alpha is None else current,
        None if rho is None else adaptation,
        None if mask is None and not options.refractory else active,
    )
    return (outs[0], outs[1], outs[2]), saved


def pull(
    operands: Operands,
    options: Options,
    voltages: Tensor,
    saved: Saved,
    cotangents: Sequence[Tensor | None],
) -> Operands:
    """Return the gradients of the operands, like `ember_ml.backend.torch.spiking_adjoint`.

    Args:
        operands: Arrays of the scan.
        options: Options of the scan.
        voltages: Voltages of the forward pass, (batch, time, neurons).
        saved: Other arrays of the forward pass.
        cotangents: Gradients of spikes, voltages and the next state; None for zeros.
    """
    parameters = [getattr(operands, name) for name in _PARAMETERS]
    x, state, *sums = backward(
        *(operands.state, *parameters, operands.mask, voltages, *saved, *cotangents),
        *(options.reset, options.refractory, options.surrogate, options.slope),
    )
    given = zip(_PARAMETERS, parameters, sums, strict=True)
    return Operands(x, state, **{name: None if p is None else g for name, p, g in given})


@torch.library.custom_op("ember_ml::triton_spiking_scan", mutates_args=())
def forward(
    x: Tensor,
    state: Tensor,
    beta: Tensor,
    threshold: Tensor,
    alpha: Tensor | None,
    rho: Tensor | None,
    strength: Tensor | None,
    mask: Tensor | None,
    reset: str,
    refractory: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return spikes, voltages, the next state, currents, adaptations and the active neurons."""
    from ember_ml.backend.torch.kernels.programs import spiking_scan as programs

    outs = _empty(x, state, alpha, rho, mask, refractory)
    batch, length, neurons = x.shape
    parameters = (beta, threshold, alpha, rho, strength, mask)
    with on_device(x):
        programs.scan[(cdiv(batch * neurons, BLOCK),)](
            *(x, state.contiguous(), *(p if p is None else p.contiguous() for p in parameters)),
            *_pointers(outs),
            *(batch * neurons, length, neurons, state.shape[1], float(refractory), *x.stride()),
            RESET=reset,
            **_flags(alpha, rho, mask, refractory),
        )
    return outs


@torch.library.custom_op("ember_ml::triton_spiking_scan_backward", mutates_args=())
def backward(
    state: Tensor,
    beta: Tensor,
    threshold: Tensor,
    alpha: Tensor | None,
    rho: Tensor | None,
    strength: Tensor | None,
    mask: Tensor | None,
    voltages: Tensor,
    currents: Tensor | None,
    adaptations: Tensor | None,
    active: Tensor | None,
    g_z: Tensor | None,
    g_voltages: Tensor | None,
    g_last: Tensor | None,
    reset: str,
    refractory: int,
    surrogate: str,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of x, state, beta, threshold, alpha, rho and strength."""
    from ember_ml.backend.torch.kernels.programs import spiking_scan as programs

    batch, length, neurons = voltages.shape
    grad_x, grad_state = _steps(voltages), state.new_empty(state.shape)
    sums = [state.new_zeros(batch, neurons) for _ in _PARAMETERS]
    parameters = (beta, threshold, alpha, rho, strength, mask)
    by_time = [None if g is None else g.transpose(0, 1).contiguous() for g in (g_z, g_voltages)]
    with on_device(voltages):
        programs.gradients[(cdiv(batch * neurons, BLOCK),)](
            *(state.contiguous(), *(p if p is None else p.contiguous() for p in parameters)),
            *(voltages.transpose(0, 1).contiguous(), currents, adaptations),
            *(None if active is None else active.view(torch.int8), *by_time),
            *(None if g_last is None else g_last.contiguous(), grad_x, grad_state, *sums),
            *(batch * neurons, length, neurons, state.shape[1], slope),
            RESET=reset,
            SURROGATE=surrogate,
            HAS_G_Z=g_z is not None,
            HAS_G_VOLTAGE=g_voltages is not None,
            HAS_G_LAST=g_last is not None,
            **_flags(alpha, rho, mask, refractory),
        )
    totals = [total.sum(0) for total in sums]
    return grad_x.transpose(0, 1), grad_state, totals[0], totals[1], totals[2], *totals[3:]


def _flags(alpha: Any, rho: Any, mask: Any, refractory: int) -> dict[str, Any]:
    return {
        "HAS_ALPHA": alpha is not None,
        "HAS_RHO": rho is not None,
        "HAS_MASK": mask is not None,
        "RESTS": refractory > 0,
        "BLOCK": BLOCK,
    }


def _steps(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return an array of all steps, (time, batch, neurons)."""
    batch, length, neurons = x.shape
    return x.new_empty((length, batch, neurons), dtype=dtype)


def _empty(
    x: Tensor, state: Tensor, alpha: Any, rho: Any, mask: Any, refractory: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return arrays for the results; arrays of unused features are empty."""
    active = mask is not None or refractory > 0
    return (
        _steps(x).transpose(0, 1),
        _steps(x).transpose(0, 1),
        state.new_empty(state.shape),
        x.new_empty(0) if alpha is None else _steps(x),
        x.new_empty(0) if rho is None else _steps(x),
        _steps(x, torch.bool) if active else x.new_empty(0),
    )


def _pointers(outs: tuple[Tensor, ...]) -> list[Tensor]:
    active = outs[5].view(torch.int8) if outs[5].dtype is torch.bool else outs[5]
    return [*outs[:5], active]


@forward.register_fake
def _(x: Tensor, state: Tensor, *rest: Any) -> Any:
    _, _, alpha, rho, _, mask, _, refractory = rest
    return _empty(x, state, alpha, rho, mask, refractory)


@backward.register_fake
def _(state: Tensor, beta: Tensor, *rest: Any) -> Any:
    voltages = rest[5]
    sums = (beta.new_empty(beta.shape) for _ in _PARAMETERS)
    return _steps(voltages).transpose(0, 1), state.new_empty(state.shape), *sums
