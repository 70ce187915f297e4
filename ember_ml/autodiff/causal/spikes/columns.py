"""Compact storage of spikes."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.host import host


class Columns(NamedTuple):
    """Spikes of a run.

    Attributes:
        places: Place of each spike, sorted: (batch * steps + time) * neurons + neuron.
        voltages: Voltage of each spike before the reset, in float32.
        bits: Packed bits, (batch, steps, bytes), set where there is a spike.
    """

    places: Array
    voltages: Array
    bits: Array

    @classmethod
    def empty(cls) -> Self:
        """Return the columns of no spikes."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros((0, 0, 0), np.uint8))


def compacted(spikes: Tensor, voltages: Tensor) -> Columns:
    """Return the columns of the spikes of a layer.

    Args:
        spikes: (batch, time, neurons), 0 where there is no spike.
        voltages: Voltages before the reset, (batch, time, neurons).
    """
    fired = host(spikes) != 0
    places = np.flatnonzero(fired)
    values = np.take(host(voltages), places).astype(np.float32)
    return Columns(places, values, np.packbits(fired, axis=-1))


def previous_steps(places: Array, shape: tuple[int, int, int]) -> Array:
    """Return the step of the spike of the same neuron and row before each one; -1 if none."""
    _, steps, neurons = shape
    rest, neuron = np.divmod(places, max(neurons, 1))
    batch, time = np.divmod(rest, max(steps, 1))
    cell = batch * neurons + neuron
    order = np.argsort(cell, kind="stable")
    same = np.diff(cell[order]) == 0
    previous = np.full(len(places), -1, np.int32)
    previous[order[1:][same]] = time[order[:-1][same]]
    return previous
