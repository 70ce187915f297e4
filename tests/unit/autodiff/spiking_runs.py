"""Recorded runs of spiking neurons, and a simulator that steps them naively in float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ember_ml import GradientTape, ops
from ember_ml.autodiff.causal import report_spikes, watch_drive
from ember_ml.autodiff.causal.spikes.report import synapse_taps
from ember_ml.nn import tensor


@dataclass
class Network:
    """Constants and inputs of a recurrent layer."""

    drive: np.ndarray
    weight: np.ndarray | None = None
    delays: np.ndarray | None = None
    beta: float = 0.9
    alpha: float | None = None
    rho: float | None = None
    strength: float = 0.0
    threshold: float = 1.0
    reset: str = "soft"
    refractory: int = 0
    mask: np.ndarray | None = None
    state: np.ndarray | None = None
    history: np.ndarray | None = None
    positions: np.ndarray | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of rows of the state."""
        return 1 + (self.alpha is not None) + (self.rho is not None) + (self.refractory > 0)

    def constants(self) -> dict[str, Any]:
        """Return the operands of the scan besides the drive, as tensors."""
        batch, _, neurons = self.drive.shape
        full = lambda value: tensor.array(np.full(neurons, value, np.float32))
        state = np.zeros((batch, self.rows, neurons)) if self.state is None else self.state
        values: dict[str, Any] = {
            "state": tensor.array(state.astype(np.float32)),
            "beta": full(self.beta),
            "threshold": full(self.threshold),
        }
        if self.alpha is not None:
            values["alpha"] = full(self.alpha)
        if self.rho is not None:
            values |= {"rho": full(self.rho), "strength": full(self.strength)}
        if self.weight is not None:
            taps = synapse_taps(self.weight.astype(np.float32), self.delays)
            values["taps"] = tensor.array(taps)
            past = np.zeros((batch, len(taps), neurons)) if self.history is None else self.history
            values["history"] = tensor.array(past.astype(np.float32))
        if self.mask is not None:
            values["mask"] = tensor.array(self.mask)
        return values

    def run(self, drive: Any, name: str = "net") -> Any:
        """Compute the spikes of the layer by the op, and report them."""
        watch_drive(drive)
        values = self.constants()
        kinds = {"reset": self.reset, "refractory": self.refractory}
        spikes, voltages, _ = ops.spiking_scan(drive, **values, **kinds)
        places = None if self.positions is None else tensor.array(self.positions)
        report_spikes(name, spikes, voltages, drive, **values, **kinds, positions=places)
        return spikes

    def record(self, loss: Any = None, **options: Any) -> tuple[Any, Any, Any]:
        """Return the tape, the spikes and the loss of a recorded run."""
        with GradientTape(causal=True, **options) as tape:
            spikes = self.run(tensor.array(self.drive.astype(np.float32)))
            value = None if loss is None else loss(spikes)
        return tape, spikes, value


def simulate(net: Network, removed: tuple[int, int, int] | None = None) -> tuple[Any, Any]:
    """Return spikes and voltages of a naive float64 loop over rows, steps, neurons and synapses.

    Args:
        net: The layer.
        removed: (batch, time, neuron) of a spike that no synapse transmits.
    """
    batch, steps, neurons = net.drive.shape
    spikes, voltages = np.zeros((2, batch, steps, neurons))
    for row in range(batch):
        v, current, level = np.zeros((3, neurons))
        rest = np.zeros(neurons, int)
        for t in range(steps):
            if net.mask is not None and not net.mask[row, t]:
                voltages[row, t] = v
                continue
            for i in range(neurons):
                x = net.drive[row, t, i]
                if net.weight is not None:
                    for j in range(neurons):
                        s = t - (1 if net.delays is None else net.delays[i, j])
                        if s >= 0 and (row, s, j) != removed:
                            x += net.weight[i, j] * spikes[row, s, j]
                if net.alpha is not None:
                    current[i] = net.alpha * current[i] + x
                    x = current[i]
                theta = net.threshold + net.strength * level[i]
                if rest[i] > 0:
                    rest[i] -= 1
                else:
                    v[i] = net.beta * v[i] + x
                    spikes[row, t, i] = v[i] > theta
                    rest[i] = net.refractory * spikes[row, t, i]
                voltages[row, t, i] = v[i]
                if spikes[row, t, i] and net.reset != "none":
                    v[i] = v[i] - theta if net.reset == "soft" else 0.0
                if net.rho is not None:
                    level[i] = net.rho * level[i] + spikes[row, t, i]
    return spikes, voltages


def network(
    seed: int = 0, neurons: int = 8, steps: int = 24, batch: int = 2, **kinds: Any
) -> Network:
    """Return a random recurrent layer with delays of 1 to 4 steps and a third of the synapses."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(0.0, 0.7, (neurons, neurons)) * (rng.random((neurons, neurons)) < 0.35)
    options = {
        "weight": np.float32(weight).astype(float),
        "delays": rng.integers(1, 5, (neurons, neurons)),
        "positions": rng.random((neurons, 3), np.float32),
        "drive": np.float32(rng.normal(0.25, 0.4, (batch, steps, neurons))).astype(float),
    }
    return Network(**options | kinds)


KINDS: dict[str, dict[str, Any]] = {
    "soft": {},
    "hard": {"reset": "hard"},
    "none": {"reset": "none", "threshold": 2.0},
    "soft refractory": {"refractory": 2},
    "hard refractory": {"reset": "hard", "refractory": 3},
    "synaptic": {"alpha": 0.7},
    "synaptic hard refractory": {"alpha": 0.7, "reset": "hard", "refractory": 2},
    "equal decays": {"alpha": 0.9, "threshold": 3.0},
    "adaptive": {"rho": 0.95, "strength": 0.4},
    "adaptive hard": {"rho": 0.8, "strength": 0.3, "reset": "hard", "refractory": 1},
    "adaptive synaptic": {"rho": 0.9, "strength": 0.2, "alpha": 0.5},
    "feedforward": {"weight": None},
    "no leak": {"beta": 1.0, "threshold": 1.5},
    "no memory": {"beta": 0.0, "threshold": 0.6},
}
"""Neurons whose decomposition is tested."""
