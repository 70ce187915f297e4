"""The backward pass of the scan of spiking neurons, in place.

The surrogate derivatives of all steps, and the gradients of the parameters, are computed in one
operation each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ember_ml.backend.spiking import Operands, Options, slope_of, split_state
from ember_ml.backend.torch.spiking import Saved, window


class Adjoint:
    """Gradients of the operands of a scan. Arrays of all steps are (time, batch, neurons).

    Args:
        operands: Arrays of the scan, at least one step long.
        options: Options of the scan.
        outputs: Spikes and voltages of the forward pass, (batch, time, neurons).
        saved: Other arrays of the forward pass.
        cotangents: Gradients of spikes, voltages and the next state; None for zeros.
        needed: Names of the operands that need a gradient.
    """

    def __init__(
        self,
        operands: Operands,
        options: Options,
        outputs: Sequence[Tensor],
        saved: Saved,
        cotangents: Sequence[Tensor | None],
        needed: set[str],
    ) -> None:
        self.operands, self.options, self.saved, self.needed = operands, options, saved, needed
        self.z, voltages = (x.transpose(0, 1) for x in outputs[:2])
        self.length, self.batch, self.size = self.z.shape
        self.delays = 0 if operands.taps is None else len(operands.taps)
        self.real = None if operands.mask is None else operands.mask.t().unsqueeze(2)
        g_z, g_voltages, g_last = cotangents
        self.g_z = None if g_z is None else g_z.transpose(0, 1)
        zeros = operands.state.new_zeros(()).expand(operands.state.shape)
        self.last = split_state(zeros if g_last is None else g_last, operands, options)
        self.theta = operands.threshold
        if saved.adaptation is not None:
            self.theta = torch.addcmul(operands.threshold, operands.strength, saved.adaptation)
        self.voltages = voltages
        self.slopes = _slopes(voltages - self.theta, options)
        if saved.active is not None:
            self.slopes.mul_(saved.active)
        self.g = voltages.new_empty(voltages.shape)  # gradients of the voltages before the reset
        self.g.zero_() if g_voltages is None else self.g.copy_(g_voltages.transpose(0, 1))
        self.sums: dict[str, Tensor] = {}  # gradients of parameters before the sum over the batch

    def gradients(self) -> Operands:
        """Return the gradients of the operands; None where none is needed."""
        coupled = self.delays or self.operands.rho is not None
        first, drives = self._coupled() if coupled else self._separate()
        sums = {name: total.sum(0) for name, total in self.sums.items()}
        if "beta" in self.needed:
            sums["beta"] = self._beta()
        if self.operands.taps is not None:
            sums |= self._synapses(drives)
        x = drives[:, : self.length] if self.delays else drives.transpose(0, 1)
        return Operands(
            x, torch.stack(first, 1), *[sums.get(name) for name in Operands._fields[2:]]
        )

    def _separate(self) -> tuple[list[Tensor], Tensor]:
        """Return the gradients of the state's rows and of the inputs, (time, batch, neurons).

        Without synapses and adaptation, voltages and currents are linear recurrences.
        """
        g_u = self.slopes.zero_() if self.g_z is None else self.slopes.mul_(self.g_z)
        g = self.g.add_(g_u)
        hard = self.options.reset == "hard"
        g[-1] += self.last.v * (1.0 - self.z[-1]) if hard else self.last.v
        factors = self._decays(self.operands.beta, self.saved.active)
        _accumulate(g, factors[1:] * (1.0 - self.z[:-1]) if hard else factors[1:])
        if "threshold" in self.needed:
            self.sums["threshold"] = self._threshold(g_u)
        first = [self._decays(self.operands.beta, self.saved.active)[0] * g[0]]
        drives = g if self.saved.active is None else g * self.saved.active
        alpha, current = self.operands.alpha, self.saved.current
        if alpha is not None:
            drives = drives.clone() if drives is g else drives
            decays = self._decays(alpha, self.real)
            drives[-1] += self.last.current
            _accumulate(drives, decays[1:])
            first.append(decays[0] * drives[0])
            if self.real is not None:
                drives.mul_(self.real)
            if "alpha" in self.needed:
                self.sums["alpha"] = (drives * current).sum(0)
        if self.last.resting is not None:
            first.append(torch.zeros_like(first[0]))
        return first, drives

    def _decays(self, decay: Tensor, active: Tensor | None) -> Tensor:
        """Return the decay of each step: 1 where a state does not change."""
        if active is None:
            return decay.expand(self.length, 1, self.size)
        return torch.where(active, decay, decay.new_ones(()))

    def _threshold(self, g_u: Tensor) -> Tensor:
        """Return the gradient of the threshold, from those of the distances to it."""
        total = g_u.sum(0).neg_()
        if self.options.reset == "soft":
            total.addcmul_(self.last.v, self.z[-1], value=-1.0)
            later = self.g[1:] * self._decays(self.operands.beta, self.saved.active)[1:]
            total.sub_(later.mul_(self.z[:-1]).sum(0))
        return total

    def _beta(self) -> Tensor:
        """Return the gradient of the decay of the voltage."""
        g = self.g if self.saved.active is None else self.g * self.saved.active
        after = self.voltages[:-1]
        if self.options.reset == "soft":
            theta = self.theta if self.theta.ndim == 1 else self.theta[:-1]
            after = torch.addcmul(after, theta, self.z[:-1], value=-1.0)
        elif self.options.reset == "hard":
            after = torch.addcmul(after, after, self.z[:-1], value=-1.0)
        first = g[0] * self.operands.state[:, 0]
        return (g[1:] * after).sum((0, 1)).add_(first.sum(0))

    def _coupled(self) -> tuple[list[Tensor], Tensor]:
        """Return the same gradients, computed step by step.

        With synapses, those of the inputs are (batch, time, neurons), followed by zeros.
        """
        _, _, beta, _, alpha, rho, strength, taps, _, _ = self.operands
        g_v, g_current, g_adaptation, resting = self.last
        drives = self.g.new_zeros(self.batch, self.length + self.delays, self.size)
        weights = None if taps is None else taps.reshape(-1, self.size)
        kinds = [] if rho is None else ["rho", "strength"]
        kinds += ["threshold"] if alpha is None else ["threshold", "alpha"]
        self.sums = {name: torch.zeros_like(self.g[0]) for name in kinds}
        soft, hard = (self.options.reset == name for name in ("soft", "hard"))
        active, one = self.saved.active, beta.new_ones(())
        adaptations: Any = self.saved.adaptation
        currents: Any = self.saved.current
        for at in range(self.length - 1, -1, -1):
            z, g, real = self.z[at], self.g[at], None if self.real is None else self.real[at]
            g_z = torch.zeros_like(g) if self.g_z is None else self.g_z[at]
            if weights is not None:
                g_z = torch.addmm(g_z, window(drives, at + 1, self.delays), weights)
            if rho is not None:
                g_z = g_z + (g_adaptation if real is None else g_adaptation * real)
            g_u = self.slopes[at].mul_(g_z)
            g.add_(g_u).add_(torch.addcmul(g_v, g_v, z, value=-1.0) if hard else g_v)
            g_theta = torch.addcmul(g_u, g_v, z) if soft else g_u  # with the opposite sign
            self.sums["threshold"].sub_(g_theta)
            drive = g if active is None else g * active[at]
            g_v = g * (beta if active is None else torch.where(active[at], beta, one))
            if rho is not None:
                before = adaptations[at]
                kept = g_adaptation if real is None else g_adaptation * real
                self.sums["strength"].addcmul_(g_theta, before, value=-1.0)
                self.sums["rho"].addcmul_(kept, before)
                decay = rho if real is None else torch.where(real, rho, one)
                g_adaptation = (g_adaptation * decay).addcmul_(g_theta, strength, value=-1.0)
            if alpha is not None:
                total = g_current + drive
                drive = total if real is None else total * real
                self.sums["alpha"].addcmul_(drive, currents[at])
                g_current = total * (alpha if real is None else torch.where(real, alpha, one))
            drives[:, at] = drive
        rows = [g_v, g_current, g_adaptation, None if resting is None else torch.zeros_like(g_v)]
        drives = drives if self.delays else drives.transpose(0, 1)
        return [row for row in rows if row is not None], drives

    def _synapses(self, drives: Tensor) -> dict[str, Tensor]:
        """Return the gradients of the taps and of the spikes before the first step."""
        taps, history = self.operands.taps, self.operands.history
        past = torch.cat([history, self.z.transpose(0, 1)], 1)
        g = drives[:, : self.length].flatten(0, 1).t()
        sources = [past[:, d : d + self.length].flatten(0, 1) for d in reversed(range(self.delays))]
        g_history = torch.zeros_like(history)
        for at in range(self.delays):
            for delay in range(
                self.delays - at, min(self.delays, self.length + self.delays - at - 1) + 1
            ):
                g_history[:, at].addmm_(drives[:, delay - self.delays + at], taps[delay - 1])
        return {"taps": torch.stack([g @ source for source in sources]), "history": g_history}


def _accumulate(g: Tensor, factors: Tensor) -> None:
    """Add to each step, in place and backward, the next one times its factor."""
    steps = g.unbind()
    for at, factor in zip(range(len(steps) - 2, -1, -1), reversed(factors.unbind()), strict=True):
        steps[at].addcmul_(factor, steps[at + 1])


def _slopes(u: Tensor, options: Options) -> Tensor:
    """Return the surrogate derivatives, in the memory of u where that is possible."""
    if options.surrogate == "fast_sigmoid":
        return u.abs_().mul_(options.slope).add_(1.0).square_().reciprocal_()
    if options.surrogate == "atan":
        half = 0.5 * options.slope
        return u.mul_(torch.pi * half).square_().add_(1.0).reciprocal_().mul_(half)
    return slope_of(torch, u, options.surrogate, options.slope)
