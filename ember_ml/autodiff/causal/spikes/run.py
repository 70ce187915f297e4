"""Record of one call of a spiking layer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.columns import Columns, compacted, previous_steps
from ember_ml.autodiff.causal.spikes.dynamics import (
    Array,
    Dynamics,
    Response,
    response,
    resting_steps,
    thresholds_of,
)
from ember_ml.autodiff.causal.spikes.events import SpikeEvent
from ember_ml.autodiff.causal.spikes.host import host
from ember_ml.autodiff.causal.spikes.inputs import InitialState, InputLink


class SpikeRun:
    """Spikes of one call of a layer, with what their causes are computed from.

    A spike takes 16 bytes: its place as one number, the voltage before the reset and the step of
    the neuron's spike before it. Another bit per step and neuron shows whether there is a spike.
    They are computed at the first query; until then the run holds the results of the layer, as the
    tape does. The drive is not copied.

    Args:
        name: Name of the layer.
        dynamics: Constants of the neurons.
        drive: External input of each step, (batch, time, neurons).
        output: Spikes, (batch, time, neurons).
        voltages: Voltages before the reset, (batch, time, neurons).
        taps: Recurrent weights, (delays, neurons, neurons): `taps[d - 1, i, j]` from neuron j to
            neuron i with a delay of d steps; None without any.
        positions: (neurons, dimensions); None without an embedding.
        initial: State before the first step. Default: zeros.
        mask: (batch, time), False where the state does not change; None for True everywhere.

    Attributes:
        shape: (batch, steps, neurons).
        link: Linear map that the drive comes from; None if it is not known.
        membrane: The voltages before the reset as a tensor, for adaptive neurons; otherwise None.
        dropped: (time, batch, neuron); all spikes before it in this order were dropped.
    """

    def __init__(
        self,
        name: str,
        dynamics: Dynamics,
        drive: Tensor,
        output: Tensor,
        voltages: Tensor,
        taps: Array | None = None,
        positions: Array | None = None,
        initial: InitialState | None = None,
        mask: Array | None = None,
    ) -> None:
        self.name = name
        batch, steps, neurons = output.shape
        self.shape = batch, steps, neurons
        self.dynamics = dynamics
        self.drive: Tensor | None = drive
        self.output: Tensor | None = output
        self.membrane = None if dynamics.rho is None else voltages
        self.taps = taps
        self.positions = positions
        self.link: InputLink | None = None
        self.initial = initial or InitialState()
        self.mask = mask
        self.dropped = 0, 0, 0
        self._pending: tuple[Tensor, Tensor] | None = (output, voltages)
        self._spikes = Columns.empty()
        self._first_step = 0
        self._previous: Array | None = None
        self._thresholds: Array | None = None
        self._host_drive: Array | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def _columns(self) -> Columns:
        if self._pending is not None:
            self._spikes, self._pending = compacted(*self._pending), None
        return self._spikes

    @property
    def places(self) -> Array:
        """Place of each spike, sorted: (batch * steps + time) * neurons + neuron."""
        return self._columns.places

    @property
    def voltages(self) -> Array:
        """Voltage of each spike before the reset."""
        return self._columns.voltages

    @property
    def _bits(self) -> Array:
        return self._columns.bits

    @property
    def previous(self) -> Array:
        """Step of the neuron's spike before each spike; -1 if there is none."""
        if self._previous is None:
            self._previous = previous_steps(self.places, self.shape)
        return self._previous

    @property
    def thresholds(self) -> Array | None:
        """Threshold at each spike; None if thresholds do not change."""
        if self._thresholds is None and self.dynamics.rho is not None:
            spikes = np.unpackbits(self._bits, axis=-1, count=self.shape[2])
            adapted = thresholds_of(self.dynamics, spikes, self.initial.adaptation, self.mask)
            self._thresholds = np.take(adapted, self.places)
        return self._thresholds

    @property
    def nbytes(self) -> int:
        """Bytes that the record of the spikes takes, without what it shares with the tape."""
        columns = (self.places, self.voltages, self.previous, self.thresholds, self._bits)
        return sum(column.nbytes for column in columns if column is not None)

    def place(self, event: SpikeEvent) -> int:
        """Return the place of an event."""
        _, steps, neurons = self.shape
        return (event.batch * steps + event.time) * neurons + event.neuron

    def event(self, place: int) -> SpikeEvent:
        """Return the event at a place."""
        _, steps, neurons = self.shape
        rest, neuron = divmod(int(place), neurons)
        batch, time = divmod(rest, steps)
        return SpikeEvent(self.name, batch, time, neuron)

    def index(self, event: SpikeEvent) -> int | None:
        """Return the index of a spike in the columns; None if there is none."""
        place = self.place(event)
        at = int(np.searchsorted(self.places, place))
        return at if at < len(self.places) and self.places[at] == place else None

    def window(self, batch: int, start: int, stop: int) -> Array:
        """Return whether neurons spiked, (stop - start, neurons); False where spikes were dropped.

        Args:
            batch: Row of the batch.
            start: First step.
            stop: Step after the last one.
        """
        neurons = self.shape[2]
        window = np.zeros((max(stop - start, 0), neurons), bool)
        low, high = max(start, self._first_step), min(stop, self.shape[1])
        if low < high:
            rows = self._bits[batch, low - self._first_step : high - self._first_step]
            window[low - start : high - start] = np.unpackbits(rows, axis=-1, count=neurons)
        return window

    def times(self, batch: int, neuron: int) -> Array:
        """Return the steps at which a neuron spiked, as far as they are stored."""
        column = self._bits[batch, :, neuron // 8] >> (7 - neuron % 8) & 1
        return np.flatnonzero(column) + self._first_step

    def respond(self, event: SpikeEvent, own: Array) -> Response:
        """Return the response of the voltage of a neuron.

        Args:
            event: Neuron and step.
            own: Earlier spikes of the neuron.
        """
        resting, mask = self._resting(event.batch, event.neuron)
        return response(self.dynamics, event.neuron, event.time, own, resting, mask)

    def active(self, batch: int, neuron: int, own: Array) -> Array:
        """Return in which steps a neuron integrates its input, (time,).

        Args:
            batch: Row of the batch.
            neuron: Index of the neuron.
            own: Spikes of the neuron.
        """
        resting, mask = self._resting(batch, neuron)
        steps = np.arange(self.shape[1])
        idle = resting_steps(self.dynamics.refractory, steps, own, resting, mask)
        return ~idle if mask is None else ~idle & mask

    def _resting(self, batch: int, neuron: int) -> tuple[int, Array | None]:
        """Return the refractory steps of a neuron at the beginning, and the mask of its row."""
        resting = 0 if self.initial.resting is None else int(self.initial.resting[batch, neuron])
        return resting, None if self.mask is None else self.mask[batch]

    def input_value(self, event: SpikeEvent) -> float:
        """Return the value of an input; 0 if there is none."""
        assert self.link is not None
        values = self.link.host_inputs()
        place = event.batch, event.time, event.neuron
        inside = all(0 <= at < size for at, size in zip(place, values.shape, strict=True))
        return float(values[place]) if inside else 0.0

    def is_evicted(self, time: int) -> bool:
        """Return whether spikes of a step may have been dropped."""
        return (time, 0, 0) < self.dropped

    def host_drive(self) -> Array:
        """Return the external drive as a host array."""
        if self._host_drive is None:
            assert self.drive is not None
            self._host_drive = host(self.drive)
        return self._host_drive

    def evict(self, count: int) -> None:
        """Drop the oldest spikes.

        Args:
            count: Number of spikes to drop, at least 1.
        """
        order = self._by_time()
        last = self.event(self.places[order[count - 1]])
        self.dropped = last.time, last.batch, last.neuron + 1
        kept = np.sort(order[count:])
        thresholds = self.thresholds
        self._thresholds = None if thresholds is None else thresholds[kept]
        self._previous = self.previous[kept]
        bits = self._bits[:, last.time - self._first_step :].copy()
        bits[: last.batch, 0] = 0
        bits[last.batch, 0, : self.dropped[2] // 8] = 0
        if self.dropped[2] % 8:
            bits[last.batch, 0, self.dropped[2] // 8] &= 0xFF >> self.dropped[2] % 8
        self._first_step = last.time
        self._spikes = Columns(self.places[kept], self.voltages[kept], bits)
        if not len(kept):
            self.drive = self.output = self.membrane = self.link = self.taps = None
            self._host_drive = None

    def _by_time(self) -> Array:
        """Return the order of the spikes by time, batch and neuron."""
        _, steps, neurons = self.shape
        return np.argsort(self.places // neurons % steps, kind="stable")

    def events(self, batch: int | None = None, start: int = 0) -> Iterator[SpikeEvent]:
        """Yield the spikes in the order of time.

        Args:
            batch: Row of the batch. Default: all.
            start: First step.
        """
        _, steps, neurons = self.shape
        if batch is None:
            places = self.places[self._by_time()]
            places = places[places // neurons % steps >= start]
        else:
            ends = np.array([batch * steps + start, (batch + 1) * steps]) * neurons
            places = self.places[slice(*np.searchsorted(self.places, ends))]
        yield from map(self.event, places)
