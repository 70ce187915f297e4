"""The scan of spiking neurons in place: few kernels per step, and no autograd.

Time is the first axis of the results in memory. The spikes of recurrent neurons have it second, so
that the steps that the delays reach are one matrix without a copy.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ember_ml.backend.spiking import Operands, Options, split_state


class Saved(NamedTuple):
    """Arrays that the backward pass needs besides the operands, spikes and voltages.

    Each has a row per step, (time, batch, neurons).
    """

    current: Tensor | None = None
    """Synaptic currents before each step."""
    adaptation: Tensor | None = None
    """Adaptations before each step."""
    active: Tensor | None = None
    """Whether neurons integrate their input: not at padding, and not while they rest."""


class Synapses:
    """Recurrent synapses and the spikes that they transmit.

    Args:
        operands: Arrays of a scan, with taps.
    """

    def __init__(self, operands: Operands) -> None:
        batch, length, self.size = operands.x.shape
        self.delays = len(operands.taps)
        self.spikes = operands.x.new_empty(batch, self.delays + length, self.size)
        self.spikes[:, : self.delays] = operands.history
        self.weights = operands.taps.flip(0).transpose(1, 2).reshape(-1, self.size)
        self.out = torch.empty_like(operands.x[:, 0], memory_format=torch.contiguous_format)

    def drive(self, x: Tensor, at: int) -> Tensor:
        """Return the input of a step and the currents of earlier spikes; valid until the next.

        Args:
            x: Input of the step, (batch, neurons).
            at: Index of the step.
        """
        return torch.addmm(x, window(self.spikes, at, self.delays), self.weights, out=self.out)


def window(x: Tensor, at: int, count: int) -> Tensor:
    """Return some steps of a contiguous array, (batch, time, neurons), as (batch, count * neurons).

    Args:
        x: The array.
        at: The first step.
        count: Number of steps.
    """
    batch, _, size = x.shape
    return x.as_strided((batch, count * size), (x.stride(0), 1), x.storage_offset() + at * size)


def run(
    operands: Operands, options: Options, save: bool
) -> tuple[tuple[Tensor, Tensor, Tensor], Saved]:
    """Return spikes, voltages and the next state, and the arrays for the backward pass.

    Args:
        operands: Arrays of the scan, at least one step long.
        options: Options of the scan.
        save: Whether to store the arrays for the backward pass.
    """
    x, state, beta, threshold, alpha, rho, strength, taps, _, mask = operands
    rows = split_state(state, operands, options)
    v, current, adaptation, resting = [None if row is None else row.clone() for row in rows]
    shape = x.shape[1], x.shape[0], x.shape[2]
    voltages = x.new_empty(shape)
    synapses = None if taps is None else Synapses(operands)
    spikes = x.new_empty(shape)
    if synapses is not None:
        spikes = synapses.spikes[:, synapses.delays :].transpose(0, 1)
    active = None
    if mask is not None or resting is not None:
        active = x.new_empty(shape, dtype=torch.bool)
    saved = Saved(
        x.new_empty(shape) if save and alpha is not None else None,
        x.new_empty(shape) if save and rho is not None else None,
        active,
    )
    real = None if mask is None else mask.t().unsqueeze(2)
    theta = threshold if rho is None else torch.empty_like(v)
    soft, hard = (options.reset == name for name in ("soft", "hard"))
    steps = zip(x.unbind(1), voltages.unbind(), spikes.unbind(), strict=True)
    for at, (drive, voltage, z) in enumerate(steps):
        now = None if real is None else real[at]
        if synapses is not None:
            drive = synapses.drive(drive, at)
        if alpha is not None:
            if saved.current is not None:
                saved.current[at] = current
            current = drive = _held(now, torch.addcmul(drive, alpha, current), current)
        torch.addcmul(drive, beta, v, out=voltage)
        if active is not None:
            _write_active(active[at], now, resting)
            torch.where(active[at], voltage, v, out=voltage)
        if rho is not None:
            if saved.adaptation is not None:
                saved.adaptation[at] = adaptation
            torch.addcmul(threshold, strength, adaptation, out=theta)
        torch.gt(voltage, theta, out=z)
        if active is not None:
            z.mul_(active[at])
        if soft:
            torch.addcmul(voltage, theta, z, value=-1.0, out=v)
        elif hard:
            torch.mul(voltage, 1.0 - z, out=v)
        else:
            v = voltage
        if rho is not None:
            adaptation = _held(now, torch.addcmul(z, rho, adaptation), adaptation)
        if resting is not None:
            left = (resting - 1.0).clamp_(min=0.0).add_(z, alpha=options.refractory)
            resting = _held(now, left, resting)
    last = [row for row in (v, current, adaptation, resting) if row is not None]
    return (spikes.transpose(0, 1), voltages.transpose(0, 1), torch.stack(last, 1)), saved


def _held(real: Tensor | None, new: Tensor, old: Tensor | None) -> Tensor:
    return new if real is None else torch.where(real, new, old)


def _write_active(out: Tensor, real: Tensor | None, resting: Tensor | None) -> None:
    if resting is not None:
        torch.le(resting, 0.0, out=out)
    if real is not None:
        out.copy_(real.expand_as(out)) if resting is None else out.logical_and_(real)
