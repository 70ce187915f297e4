"""Simulation of the neurons of a run, step by step in float64."""

from __future__ import annotations

import numpy as np

from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.run import SpikeRun


class Neurons:
    """State of the neurons of one batch row, with the equations of `ops.spiking_scan`.

    Args:
        run: The recorded run.
        batch: Row of the batch.

    Attributes:
        voltage: Voltage, (neurons,); before the reset between `integrate` and `reset`.
    """

    def __init__(self, run: SpikeRun, batch: int) -> None:
        self._run = run
        self._batch = batch
        self._dynamics = run.dynamics
        state = run.initial
        self.voltage = self._row(state.voltage)
        self._current = self._row(state.current)
        self._adaptation = self._row(state.adaptation)
        self._resting = self._row(state.resting)
        self._active = np.ones(run.shape[2], bool)

    def _row(self, values: Array | None) -> Array:
        if values is None:
            return np.zeros(self._run.shape[2])
        return values[self._batch].astype(np.float64)

    def drives(self, spikes: Array) -> Array:
        """Return the external and recurrent input of each step, (steps, neurons).

        Args:
            spikes: Transmitted spikes, (steps, neurons).
        """
        steps = len(spikes)
        drives = self._run.host_drive()[self._batch, :steps].astype(np.float64)
        if self._run.taps is None:
            return drives
        delays = len(self._run.taps)
        past = np.zeros((delays, self._run.shape[2]))
        if self._run.initial.spikes is not None:
            past = self._run.initial.spikes[self._batch]
        history = np.concatenate([past, spikes])
        for delay in range(1, delays + 1):
            shifted = history[delays - delay : delays - delay + steps]
            drives = drives + shifted @ self._run.taps[delay - 1].T.astype(np.float64)
        return drives

    def integrate(self, step: int, drive: Array) -> None:
        """Compute the voltages of a step before the reset.

        Args:
            step: The step.
            drive: External and recurrent input, (neurons,).
        """
        dynamics = self._dynamics
        real = self._is_real(step)
        if dynamics.alpha is not None:
            self._current = dynamics.alpha * self._current + drive if real else self._current
            drive = self._current
        self._active = np.full(len(drive), real) & (self._resting <= 0.0)
        self.voltage = np.where(self._active, dynamics.beta * self.voltage + drive, self.voltage)

    def _is_real(self, step: int) -> bool:
        return self._run.mask is None or bool(self._run.mask[self._batch, step])

    def differs(self, other: Neurons) -> Array:
        """Return which neurons have another state, (neurons,)."""
        return (
            (self.voltage != other.voltage)
            | (self._adaptation != other._adaptation)
            | (self._active != other._active)
        )

    def thresholds(self) -> Array:
        """Return the thresholds of the step, (neurons,)."""
        dynamics = self._dynamics
        if dynamics.rho is None or dynamics.strength is None:
            return dynamics.threshold
        return dynamics.threshold + dynamics.strength * self._adaptation

    def fires(self) -> Array:
        """Return which neurons are above their threshold and not refractory, (neurons,)."""
        return self._active & (self.voltage > self.thresholds())

    def reset(self, step: int, spikes: Array) -> None:
        """Reset the neurons that spiked.

        Args:
            step: The step.
            spikes: Which neurons spiked, (neurons,).
        """
        dynamics = self._dynamics
        if dynamics.reset == "soft":
            self.voltage = self.voltage - self.thresholds() * spikes
        elif dynamics.reset == "hard":
            self.voltage = np.where(spikes, 0.0, self.voltage)
        if not self._is_real(step):
            return
        if dynamics.rho is not None:
            self._adaptation = dynamics.rho * self._adaptation + spikes
        self._resting = np.maximum(self._resting - 1.0, 0.0) + dynamics.refractory * spikes
