"""The spiking runs of a causal context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, SpikeError
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.events import SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun


class SpikeStore:
    """Spiking runs by name, with a bound on the number of spikes.

    Args:
        max_events: Maximum number of spikes; the oldest are dropped. Default: no limit.

    Attributes:
        runs: The runs, the oldest first.
    """

    def __init__(self, max_events: int | None = None) -> None:
        self.max_events = max_events
        self.runs: dict[str, SpikeRun] = {}
        self._calls: Counter[str] = Counter()

    def __len__(self) -> int:
        return sum(len(run) for run in self.runs.values())

    def unique_name(self, name: str) -> str:
        """Return a name that no run has: the name, or with the number of the call."""
        self._calls[name] += 1
        count = self._calls[name]
        return name if count == 1 else f"{name}:{count}"

    def add(self, run: SpikeRun) -> None:
        """Store a run, and drop the oldest spikes if there are too many."""
        self.runs[run.name] = run
        if self.max_events is None:
            return
        excess = len(self) - self.max_events
        for name, each in list(self.runs.items()):
            surplus_runs = len(self.runs) - self.max_events  # silent runs take memory too
            if excess <= 0 and surplus_runs <= 0:
                return
            count = len(each) if surplus_runs > 0 else min(excess, len(each))
            excess -= count
            if count:
                each.evict(count)
            if not len(each) and each is not run:
                del self.runs[name]

    def producer(self, tensor: Tensor) -> SpikeRun | None:
        """Return the run whose output a tensor is; None if there is none."""
        for run in reversed(self.runs.values()):
            if run.output is not None and run.output._data is tensor._data:
                return run
        return None

    def run(self, layer: str | None = None) -> SpikeRun:
        """Return the run of a layer; without a name, the only one."""
        if not self.runs:
            raise SpikeError(
                "no spiking run was recorded; call a spiking layer inside the `with` block of "
                "GradientTape(causal=True)"
            )
        if layer is None:
            if len(self.runs) > 1:
                raise ArgumentError(f"name the layer, one of {self._names()}")
            return next(iter(self.runs.values()))
        if not isinstance(layer, str):
            raise ArgumentTypeError(f"layer must be a name, one of {self._names()}, not {layer!r}")
        if layer not in self.runs and self._calls[layer.partition(":")[0]]:
            raise SpikeError(
                f"the run of {layer!r} was dropped, or did not happen: max_events bounds the record"
            )
        if layer not in self.runs:
            raise SpikeError(f"no spiking run of {layer!r} was recorded; there are {self._names()}")
        return self.runs[layer]

    def _names(self) -> str:
        return ", ".join(map(repr, self.runs))

    def find(self, event: SpikeEvent) -> tuple[SpikeRun, int]:
        """Return the run of a spike and its index there; raise an error if it was not recorded."""
        if not isinstance(event, SpikeEvent):
            raise ArgumentTypeError(
                f"expected a SpikeEvent, not {type(event).__name__}; `spikes()` lists them"
            )
        run = self.run(event.layer)
        self.check_inside(run, event)
        index = run.index(event)
        if index is None:
            raise SpikeError(_explain(run, event))
        return run, index

    def driven_by(self, event: SpikeEvent) -> SpikeRun | None:
        """Return the run that an input event drives; None if it is a spike of a recorded layer."""
        if not isinstance(event, SpikeEvent) or event.layer in self.runs:
            return None
        links = [run for run in self.runs.values() if run.link is not None]
        return next((run for run in links if run.link and run.link.name == event.layer), None)

    def check(self, event: SpikeEvent) -> None:
        """Raise an error if an event is neither a recorded spike nor an input of a layer."""
        run = self.driven_by(event)
        if run is None:
            self.find(event)
        elif run.input_value(event) == 0.0:
            raise SpikeError(f"{event} is no input: its value is 0, or it is out of range")

    def check_inside(self, run: SpikeRun, event: SpikeEvent) -> None:
        """Raise an error if an event is outside of the run."""
        names = ("batch", "time", "neuron")
        for name, size in zip(names, run.shape, strict=True):
            value = getattr(event, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ArgumentTypeError(f"{name} must be an integer, not {value!r}")
            if not 0 <= value < size:
                raise SpikeError(
                    f"{name} {value} is out of range: {run.name!r} has {run.shape[1]} steps, "
                    f"{run.shape[0]} batch rows and {run.shape[2]} neurons, counted from 0"
                )

    def spikes(
        self,
        layer: str | None = None,
        batch: int | None = None,
        neuron: int | None = None,
    ) -> Iterator[SpikeEvent]:
        """Yield the spikes of a layer, a batch row or a neuron, in the order of time."""
        runs = [self.run(layer)] if layer is not None or not self.runs else [*self.runs.values()]
        for name, at, axis in (("batch", batch, 0), ("neuron", neuron, 2)):
            size = max(run.shape[axis] for run in runs)
            if at is None:
                continue
            if isinstance(at, bool) or not isinstance(at, int):
                raise ArgumentTypeError(f"spikes: {name} must be an integer, not {at!r}")
            if not 0 <= at < size:
                raise SpikeError(f"spikes: {name} {at} is out of range, from 0 to {size - 1}")
        for run in runs:
            for event in run.events(batch):
                if neuron is None or event.neuron == neuron:
                    yield event


def _explain(run: SpikeRun, event: SpikeEvent) -> str:
    """Return why there is no such spike, and the nearest one that there is."""
    if (event.time, event.batch, event.neuron) < run.dropped:
        first = f"; the oldest one is {next(run.events())}" if len(run) else ""
        return (
            f"the record of {event} was dropped, if it was a spike: max_events bounds the record"
            f"{first}. Increase max_events, or query earlier"
        )
    times = run.times(event.batch, event.neuron)
    if not len(times):
        return f"{event} is not a spike: this neuron never spiked in this row"
    nearest = times[np.argsort(np.abs(times - event.time), kind="stable")[:2]]
    steps = " and ".join(str(step) for step in sorted(nearest))
    where = f"{'step' if len(nearest) == 1 else 'steps'} {steps}"
    return f"{event} is not a spike; the nearest spikes of this neuron are at {where}"
