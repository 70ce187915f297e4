"""The backward pass of the scan of spiking neurons, in place.

Neurons without synapses and adaptation are linear recurrences backward in time. They are computed
in blocks of steps, whose intermediate arrays fit a cache and take little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ember_ml.backend.spiking import Operands, Options, slope_of, split_state
from ember_ml.backend.torch.spiking import Saved, window

_BLOCK = 1 << 15  # elements of an array of a block


class Adjoint:
    """Gradients of the operands of a scan. Arrays of all steps are (time, batch, neurons).

    Args:
        operands: Arrays of the scan, at least one step long.
        options: Options of the scan.
        voltages: Voltages of the forward pass, (batch, time, neurons).
        saved: Other arrays of the forward pass.
        cotangents: Gradients of spikes, voltages and the next state; None for zeros.
        needed: Names of the operands that need a gradient.
    """

    def __init__(
        self,
        operands: Operands,
        options: Options,
        voltages: Tensor,
        saved: Saved,
        cotangents: Sequence[Tensor | None],
        needed: set[str],
    ) -> None:
        self.operands, self.options, self.saved, self.needed = operands, options, saved, needed
        self.voltages = voltages.transpose(0, 1)
        self.length, self.batch, self.size = self.voltages.shape
        self.delays = 0 if operands.taps is None else len(operands.taps)
        self.real = None if operands.mask is None else operands.mask.t().unsqueeze(2)
        g_last = cotangents[2]
        self.g_z, self.g_voltages = (
            None if g is None else g.transpose(0, 1) for g in cotangents[:2]
        )
        zeros = operands.state.new_zeros(()).expand(operands.state.shape)
        self.last = split_state(zeros if g_last is None else g_last, operands, options)
        self.sums: dict[str, Tensor] = {}  # gradients of the parameters

    def gradients(self) -> Operands:
        """Return the gradients of the operands; None where none is needed."""
        coupled = self.delays or self.operands.rho is not None
        first, drives = self._coupled() if coupled else self._separate()
        x = drives[:, : self.length] if self.delays else drives.transpose(0, 1)
        return Operands(
            x, torch.stack(first, 1), *[self.sums.get(name) for name in Operands._fields[2:]]
        )

    def _blocks(self) -> Iterator[slice]:
        """Return slices of successive steps, the last ones first."""
        steps = max(1, _BLOCK // max(1, self.batch * self.size))
        for stop in range(self.length, 0, -steps):
            yield slice(max(0, stop - steps), stop)

    def _spikes(self, part: slice) -> Tensor:
        """Return the spikes of some steps, from the voltages."""
        z = torch.gt(self.voltages[part], self._theta(part))
        if self.saved.active is not None:
            z.logical_and_(self.saved.active[part])
        return z.to(self.voltages.dtype)

    def _theta(self, part: slice) -> Tensor:
        """Return the thresholds of some steps."""
        _, _, _, threshold, _, _, strength, *_ = self.operands
        if self.saved.adaptation is None:
            return threshold
        return torch.addcmul(threshold, strength, self.saved.adaptation[part])

    def _slopes(self, part: slice) -> Tensor:
        """Return the surrogate derivatives of the spikes of some steps."""
        slopes = _slopes(self.voltages[part] - self._theta(part), self.options)
        active = self.saved.active
        return slopes if active is None else slopes.mul_(active[part])

    def _separate(self) -> tuple[list[Tensor], Tensor]:
        """Return the gradients of the state's rows and of the inputs, (time, batch, neurons)."""
        alpha, active = self.operands.alpha, self.saved.active
        g = self.voltages.new_empty(self.voltages.shape)
        drives = g if alpha is None and active is None else torch.empty_like(g)
        g_v, g_current = self.last.v, self.last.current  # of the state after the block
        for part in self._blocks():
            g_v = self._voltages(g[part], part, g_v)
            if drives is g:
                continue
            drive = drives[part]
            drive.copy_(g[part]) if active is None else torch.mul(g[part], active[part], out=drive)
            if alpha is not None:
                g_current = self._currents(drive, part, g_current)
        rows = [g_v, g_current, None if self.last.resting is None else torch.zeros_like(g_v)]
        return [row for row in rows if row is not None], drives

    def _voltages(self, g: Tensor, part: slice, g_v: Tensor) -> Tensor:
        """Write the gradients of the voltages of a block; return that of the state before it.

        Args:
            g: Result, (steps, batch, neurons).
            part: Steps of the block.
            g_v: Gradient of the voltage after the block.
        """
        if self.g_z is None:
            g.zero_()
        else:
            torch.mul(self._slopes(part), self.g_z[part], out=g)
        hard, soft = (self.options.reset == name for name in ("hard", "soft"))
        learned = self.needed & {"beta", "threshold"}
        z = self._spikes(part) if hard or learned else None
        if "threshold" in learned:
            self._add("threshold", g, -1.0)
        if self.g_voltages is not None:
            g.add_(self.g_voltages[part])
        factors = self._decays(self.operands.beta, self.saved.active, part)
        passed = g_v  # the gradient of the voltage after each step
        g[-1] += torch.addcmul(g_v, g_v, z[-1], value=-1.0) if z is not None and hard else g_v
        later = _after_first(factors)
        _accumulate(g, later * (1.0 - z[:-1]) if z is not None and hard else later)
        if z is not None and learned:
            self._learn(g, part, z, later, passed, soft)
        return _first(factors) * g[0]

    def _learn(
        self, g: Tensor, part: slice, z: Tensor, later: Tensor, passed: Tensor, soft: bool
    ) -> None:
        """Add the gradients of the threshold, through the reset, and of the decay of a block."""
        if "threshold" in self.needed and soft:
            self._add("threshold", (g[1:] * later).mul_(z[:-1]), -1.0)
            self._add("threshold", (passed * z[-1]).unsqueeze(0), -1.0)
        if "beta" in self.needed:
            steps = g if self.saved.active is None else g * self.saved.active[part]
            self._add("beta", self._before(part, z) * steps)

    def _before(self, part: slice, z: Tensor) -> Tensor:
        """Return the voltages before the steps of a block, after the reset of the last spike."""
        before = torch.empty_like(z)
        start = part.start
        if start:
            earlier = slice(start - 1, part.stop - 1)
            fired = torch.cat([self._spikes(slice(start - 1, start)), z[:-1]])
            self._after(earlier, fired, before)
        else:
            before[0] = self.operands.state[:, 0]
            if len(z) > 1:
                self._after(slice(0, part.stop - 1), z[:-1], before[1:])
        return before

    def _after(self, part: slice, z: Tensor, out: Tensor) -> None:
        """Write the voltages after the reset of some steps."""
        voltages = self.voltages[part]
        if self.options.reset == "none":
            out.copy_(voltages)
        elif self.options.reset == "hard":
            torch.mul(voltages, 1.0 - z, out=out)
        else:
            torch.addcmul(voltages, self._theta(part), z, value=-1.0, out=out)

    def _currents(self, drive: Tensor, part: slice, g_current: Tensor) -> Tensor:
        """Turn the gradients of currents in a block into those of its inputs.

        Returns:
            The gradient of the synaptic current before the block.
        """
        decays = self._decays(self.operands.alpha, self.real, part)
        drive[-1] += g_current
        _accumulate(drive, _after_first(decays))
        g_current = _first(decays) * drive[0]
        if self.real is not None:
            drive.mul_(self.real[part])
        if "alpha" in self.needed and self.saved.current is not None:
            self._add("alpha", drive * self.saved.current[part])
        return g_current

    def _decays(self, decay: Tensor, active: Tensor | None, part: slice) -> Tensor:
        """Return the decay of each step, 1 where a state does not change; or that of all steps."""
        return decay if active is None else torch.where(active[part], decay, decay.new_ones(()))

    def _add(self, name: str, values: Tensor, sign: float = 1.0) -> None:
        """Add values of some steps to the gradient of a parameter."""
        if name not in self.sums:
            self.sums[name] = values.new_zeros(self.size)
        self.sums[name].add_(values.sum((0, 1)), alpha=sign)

    def _coupled(self) -> tuple[list[Tensor], Tensor]:
        """Return the same gradients, computed step by step.

        With synapses, those of the inputs are (batch, time, neurons), followed by zeros.
        """
        _, _, beta, _, alpha, rho, strength, taps, _, _ = self.operands
        whole = slice(0, self.length)
        slopes, spikes = self._slopes(whole), self._spikes(whole)
        before = self._before(whole, spikes) if "beta" in self.needed else None
        g_v, g_current, g_adaptation, resting = self.last
        drives = slopes.new_zeros(self.batch, self.length + self.delays, self.size)
        weights = None if taps is None else taps.reshape(-1, self.size)
        kinds = [name for name in ("rho", "strength") if rho is not None]
        kinds += ["threshold", "beta", *(["alpha"] if alpha is not None else [])]
        sums = {name: torch.zeros_like(slopes[0]) for name in kinds}
        soft, hard = (self.options.reset == name for name in ("soft", "hard"))
        active, one = self.saved.active, beta.new_ones(())
        adaptations: Any = self.saved.adaptation
        currents: Any = self.saved.current
        for at in range(self.length - 1, -1, -1):
            z, real = spikes[at], None if self.real is None else self.real[at]
            g_z = torch.zeros_like(z) if self.g_z is None else self.g_z[at]
            if weights is not None:
                g_z = torch.addmm(g_z, window(drives, at + 1, self.delays), weights)
            if rho is not None:
                g_z = g_z + (g_adaptation if real is None else g_adaptation * real)
            g_u = slopes[at].mul_(g_z)
            g = g_u + (torch.addcmul(g_v, g_v, z, value=-1.0) if hard else g_v)
            if self.g_voltages is not None:
                g.add_(self.g_voltages[at])
            g_theta = torch.addcmul(g_u, g_v, z) if soft else g_u  # with the opposite sign
            sums["threshold"].sub_(g_theta)
            drive = g if active is None else g * active[at]
            if before is not None:
                sums["beta"].addcmul_(drive, before[at])
            g_v = g * (beta if active is None else torch.where(active[at], beta, one))
            if rho is not None:
                kept = g_adaptation if real is None else g_adaptation * real
                sums["strength"].addcmul_(g_theta, adaptations[at], value=-1.0)
                sums["rho"].addcmul_(kept, adaptations[at])
                decay = rho if real is None else torch.where(real, rho, one)
                g_adaptation = (g_adaptation * decay).addcmul_(g_theta, strength, value=-1.0)
            if alpha is not None:
                total = g_current + drive
                drive = total if real is None else total * real
                sums["alpha"].addcmul_(drive, currents[at])
                g_current = total * (alpha if real is None else torch.where(real, alpha, one))
            drives[:, at] = drive
        self.sums = {name: total.sum(0) for name, total in sums.items()}
        if taps is not None:
            self.sums |= self._synapses(drives, spikes)
        rows = [g_v, g_current, g_adaptation, None if resting is None else torch.zeros_like(g_v)]
        drives = drives if self.delays else drives.transpose(0, 1)
        return [row for row in rows if row is not None], drives

    def _synapses(self, drives: Tensor, spikes: Tensor) -> dict[str, Tensor]:
        """Return the gradients of the taps and of the spikes before the first step."""
        taps, history = self.operands.taps, self.operands.history
        past = torch.cat([history, spikes.transpose(0, 1)], 1)
        g = drives[:, : self.length].flatten(0, 1).t()
        sources = [past[:, d : d + self.length].flatten(0, 1) for d in reversed(range(self.delays))]
        g_history = torch.zeros_like(history)
        for at in range(self.delays):
            first = self.delays - at  # the delay that reaches the first step
            for delay in range(first, min(self.delays, self.length + first - 1) + 1):
                g_history[:, at].addmm_(drives[:, delay - first], taps[delay - 1])
        return {"taps": torch.stack([g @ source for source in sources]), "history": g_history}


def _first(decays: Tensor) -> Tensor:
    return decays if decays.ndim == 1 else decays[0]


def _after_first(decays: Tensor) -> Tensor:
    return decays if decays.ndim == 1 else decays[1:]


def _accumulate(g: Tensor, factors: Tensor) -> None:
    """Add to each step, in place and backward, the next one times its factor.

    Args:
        g: (steps, ...).
        factors: Factors of all steps but the first, (steps - 1, ...), or one for all.
    """
    steps = g.unbind()
    each = factors.unbind() if factors.ndim == g.ndim else (factors,) * (len(steps) - 1)
    for at in range(len(steps) - 2, -1, -1):
        steps[at].addcmul_(each[at], steps[at + 1])


def _slopes(u: Tensor, options: Options) -> Tensor:
    """Return the surrogate derivatives, in the memory of u where that is possible."""
    if options.surrogate == "fast_sigmoid":
        return u.abs_().mul_(options.slope).add_(1.0).square_().reciprocal_()
    if options.surrogate == "atan":
        half = 0.5 * options.slope
        return u.mul_(torch.pi * half).square_().add_(1.0).reciprocal_().mul_(half)
    return slope_of(torch, u, options.surrogate, options.slope)
