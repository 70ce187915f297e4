"""Record of one call of a spiking layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.dynamics import (
    Array,
    Dynamics,
    Response,
    response,
    resting_steps,
    thresholds_of,
)
from ember_ml.autodiff.causal.spikes.events import SpikeEvent


@dataclass(frozen=True)
class InputLink:
    """Linear map from input spikes to the external drive of a layer.

    Attributes:
        inputs: Input of the map, (batch, time, inputs).
        weight: (neurons, inputs); None for the identity.
        source: Run whose output `inputs` is; None for inputs from outside.
        name: Name of the layer of the inputs.
    """

    inputs: Tensor
    weight: Array | None
    source: SpikeRun | None
    name: str

    def host_inputs(self) -> Array:
        """Return the inputs as a host array."""
        return self.inputs.numpy()


@dataclass(frozen=True)
class InitialState:
    """State before the first step; None for zeros.

    Attributes:
        voltage: (batch, neurons), after the reset.
        current: Synaptic current, (batch, neurons).
        adaptation: Adaptation of the threshold, (batch, neurons).
        resting: Remaining refractory steps, (batch, neurons).
        spikes: Spikes before the first step, the oldest first, (batch, steps, neurons).
    """

    voltage: Array | None = None
    current: Array | None = None
    adaptation: Array | None = None
    resting: Array | None = None
    spikes: Array | None = None


class SpikeRun:
    """Spikes of one call of a layer, with what their causes are computed from.

    A spike takes 16 bytes: its place as one number, the voltage before the reset and the step of
    the neuron's spike before it. Another bit per step and neuron shows whether there is a spike.
    The drive is not copied.

    Attributes:
        name: Name of the layer.
        shape: (steps, batch, neurons).
        dynamics: Constants of the neurons.
        drive: External input of each step, (batch, time, neurons).
        output: The spikes as a tensor, (batch, time, neurons).
        membrane: The voltages before the reset as a tensor, for adaptive neurons; otherwise None.
        taps: Recurrent weights, (delays, neurons, neurons): `taps[d - 1, i, j]` from neuron j to
            neuron i with a delay of d steps; None without any.
        positions: (neurons, dimensions); None without an embedding.
        link: Linear map that the drive comes from; None if it is not known.
        initial: State before the first step.
        mask: (batch, time), False where the state does not change; None for True everywhere.
        places: Place of each spike, sorted: (time * batch size + batch) * neurons + neuron.
        voltages: Voltage of each spike before the reset.
        previous: Step of the neuron's spike before it; -1 if there is none.
        thresholds: Threshold at each spike; None if thresholds do not change.
        first_place: All spikes before this place were dropped.
    """

    def __init__(
        self,
        name: str,
        spikes: Array,
        voltages: Array,
        dynamics: Dynamics,
        drive: Tensor,
        output: Tensor,
        taps: Array | None = None,
        positions: Array | None = None,
        link: InputLink | None = None,
        initial: InitialState | None = None,
        mask: Array | None = None,
    ) -> None:
        self.name = name
        batch, steps, neurons = spikes.shape
        self.shape = steps, batch, neurons
        self.dynamics = dynamics
        self.drive: Tensor | None = drive
        self.output: Tensor | None = output
        self.membrane: Tensor | None = None
        self.taps = taps
        self.positions = positions
        self.link = link
        self.initial = initial or InitialState()
        self.mask = mask
        by_time = np.ascontiguousarray((spikes != 0).transpose(1, 0, 2))
        self._bits = np.packbits(by_time, axis=-1)  # (steps, batch, bytes)
        self._first_step = 0
        self.places = np.flatnonzero(by_time)
        self.voltages = _gather(voltages, self.places, self.shape)
        self.thresholds: Array | None = None
        if dynamics.rho is not None:
            adapted = thresholds_of(dynamics, spikes, self.initial.adaptation, mask)
            self.thresholds = _gather(adapted, self.places, self.shape)
        self.previous = _previous(self.places, batch * neurons)
        self.first_place = 0
        self._host_drive: Array | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def nbytes(self) -> int:
        """Bytes that the record of the spikes takes, without what it shares with the tape."""
        columns = (self.places, self.voltages, self.previous, self.thresholds, self._bits)
        return sum(column.nbytes for column in columns if column is not None)

    def place(self, event: SpikeEvent) -> int:
        """Return the place of an event."""
        _, batch, neurons = self.shape
        return (event.time * batch + event.batch) * neurons + event.neuron

    def event(self, place: int) -> SpikeEvent:
        """Return the event at a place."""
        _, batch, neurons = self.shape
        rest, neuron = divmod(int(place), neurons)
        time, row = divmod(rest, batch)
        return SpikeEvent(self.name, row, time, neuron)

    def index(self, event: SpikeEvent) -> int | None:
        """Return the index of a spike in the columns; None if there is none."""
        place = self.place(event)
        at = int(np.searchsorted(self.places, place))
        return at if at < len(self.places) and self.places[at] == place else None

    def window(self, batch: int, start: int, stop: int) -> Array:
        """Return whether neurons spiked, (stop - start, neurons); False where spikes were dropped.

        Args:
            batch: Row of the batch.
            start: First step, which may be negative.
            stop: Step after the last one.
        """
        neurons = self.shape[2]
        window = np.zeros((max(stop - start, 0), neurons), bool)
        low, high = max(start, self._first_step), min(stop, self.shape[0])
        if low < high:
            rows = self._bits[low - self._first_step : high - self._first_step, batch]
            window[low - start : high - start] = np.unpackbits(rows, axis=-1, count=neurons)
        return window

    def times(self, batch: int, neuron: int) -> Array:
        """Return the steps at which a neuron spiked, as far as they are stored."""
        column = self._bits[:, batch, neuron // 8] >> (7 - neuron % 8) & 1
        return np.flatnonzero(column) + self._first_step

    def respond(self, event: SpikeEvent, own: Array) -> Response:
        """Return the response of the voltage of a neuron.

        Args:
            event: Neuron and step.
            own: Earlier spikes of the neuron.
        """
        resting = 0
        if self.initial.resting is not None:
            resting = int(self.initial.resting[event.batch, event.neuron])
        mask = None if self.mask is None else self.mask[event.batch]
        return response(self.dynamics, event.neuron, event.time, own, resting, mask)

    def active(self, batch: int, neuron: int, own: Array) -> Array:
        """Return in which steps a neuron integrates its input, (time,).

        Args:
            batch: Row of the batch.
            neuron: Index of the neuron.
            own: Spikes of the neuron.
        """
        steps = np.arange(self.shape[0])
        resting = 0 if self.initial.resting is None else int(self.initial.resting[batch, neuron])
        mask = None if self.mask is None else self.mask[batch]
        idle = resting_steps(self.dynamics.refractory, steps, own, resting, mask)
        return ~idle if mask is None else ~idle & mask

    def is_evicted(self, time: int) -> bool:
        """Return whether spikes of a step may have been dropped."""
        _, batch, neurons = self.shape
        return time >= 0 and time * batch * neurons < self.first_place

    def host_drive(self) -> Array:
        """Return the external drive as a host array."""
        if self._host_drive is None:
            assert self.drive is not None
            self._host_drive = self.drive.numpy()
        return self._host_drive

    def evict(self, count: int) -> None:
        """Drop the oldest spikes.

        Args:
            count: Number of spikes to drop.
        """
        self.first_place = int(self.places[count - 1]) + 1
        if count == len(self):
            self.drive = self.output = self.membrane = self.link = self.taps = None
            self._host_drive = None
        for name in ("places", "voltages", "previous", "thresholds"):
            column = getattr(self, name)
            if column is not None:
                setattr(self, name, column[count:].copy())
        steps, batch, neurons = self.shape
        step = self.first_place // (batch * neurons)
        self._bits = self._bits[step - self._first_step :].copy()
        self._first_step = step
        row, neuron = divmod(self.first_place - step * batch * neurons, neurons)
        if len(self._bits):
            self._bits[0, :row] = 0
            self._bits[0, row, : neuron // 8] = 0
            if neuron % 8:
                self._bits[0, row, neuron // 8] &= 0xFF >> neuron % 8

    def events(self, batch: int | None = None, start: int = 0) -> Iterator[SpikeEvent]:
        """Yield the spikes in the order of time.

        Args:
            batch: Row of the batch. Default: all.
            start: First step.
        """
        _, rows, neurons = self.shape
        for place in self.places[np.searchsorted(self.places, start * rows * neurons) :]:
            if batch is None or int(place) // neurons % rows == batch:
                yield self.event(place)


def _gather(values: Array, places: Array, shape: tuple[int, int, int]) -> Array:
    """Return the values, (batch, time, neurons), at places as float32."""
    _, batch, neurons = shape
    rest, neuron = np.divmod(places, neurons)
    time, row = np.divmod(rest, batch)
    return np.broadcast_to(values, (batch, shape[0], neurons))[row, time, neuron].astype(np.float32)


def _previous(places: Array, neurons: int) -> Array:
    """Return the step of the spike of the same neuron and row before each one; -1 if none."""
    time, cell = np.divmod(places, max(neurons, 1))
    narrow = np.uint16 if neurons <= 1 << 16 else np.int64  # 16 bits are sorted faster
    order = np.argsort(cell.astype(narrow), kind="stable")
    same = np.diff(cell[order]) == 0
    previous = np.full(len(places), -1, np.int32)
    previous[order[1:][same]] = time[order[:-1][same]]
    return previous
