"""Reruns of recorded spikes with one of them removed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ember_ml._core.errors import ArgumentError, SpikeError
from ember_ml.autodiff.causal.spikes.causes import decompose
from ember_ml.autodiff.causal.spikes.dynamics import Array
from ember_ml.autodiff.causal.spikes.events import Counterfactual, SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.causal.spikes.simulation import Neurons
from ember_ml.autodiff.causal.spikes.store import SpikeStore


class _Rerun(NamedTuple):
    """Result of a rerun of one batch row.

    Attributes:
        spikes: Whether neurons spike, (steps, neurons).
        change: Change of the voltages before the reset, (steps, neurons).
    """

    spikes: Array
    change: Array


def but_for(store: SpikeStore, removed: SpikeEvent, event: SpikeEvent) -> Counterfactual:
    """Return what happens to a spike if an earlier one is not transmitted.

    The neuron of the removed spike is reset as recorded; its spike reaches no synapse.

    Args:
        store: The recorded runs.
        removed: The spike to remove, or an input of a layer, which becomes 0.
        event: The spike to ask about.
    """
    store.check(removed)
    run, index = store.find(event)
    if removed == event:
        raise ArgumentError(f"but_for: both events are {event}")
    if removed.batch != event.batch:
        raise ArgumentError(
            f"but_for: rows of a batch do not influence each other: {removed.batch} and "
            f"{event.batch}"
        )
    results = _rerun_layers(store, run, removed, event.time + 1)
    change = float(results[run.name].change[event.time, event.neuron])
    appeared, vanished = _differences(store, results, removed, event)
    voltage = float(run.voltages[index])
    return Counterfactual(
        removed=removed,
        event=event,
        fired=bool(results[run.name].spikes[event.time, event.neuron]),
        voltage=voltage + change,
        change=change,
        predicted=-_contribution(run, index, removed),
        appeared=tuple(appeared),
        vanished=tuple(vanished),
    )


def _contribution(run: SpikeRun, index: int, cause: SpikeEvent) -> float:
    """Return the direct contribution of a spike to another one; 0 if there is none."""
    total = 0.0
    for part in decompose(run, index).arrivals:
        same = (part.times == cause.time) & (part.neurons == cause.neuron)
        if part.layer == cause.layer:
            total += float(part.contributions[same].sum())
    return total


def _rerun_layers(
    store: SpikeStore, target: SpikeRun, removed: SpikeEvent, stop: int
) -> dict[str, _Rerun]:
    """Rerun the layers from that of the removed spike to that of the target."""
    results: dict[str, _Rerun] = {}
    for run in store.runs.values():
        change = np.zeros((min(stop, run.shape[1]), run.shape[2]))
        if run.link is not None and run.link.source is not None:
            before = results.get(run.link.source.name)
            if before is not None:
                change += _transmitted(run, before, removed)
        if run.link is not None and run.link.name == removed.layer and run.link.source is None:
            change += _without_input(run, removed, len(change))
        if run.name == removed.layer or change.any():
            results[run.name] = _rerun(run, change, removed)
        if run is target:
            break
    if target.name not in results:
        nothing = np.zeros((stop, target.shape[2]))
        results[target.name] = _Rerun(target.window(removed.batch, 0, stop), nothing)
    return results


def _without_input(run: SpikeRun, removed: SpikeEvent, steps: int) -> Array:
    """Return the change of the external drive of a layer if an input is 0, (steps, neurons)."""
    change = np.zeros((steps, run.shape[2]))
    if removed.time < steps:
        assert run.link is not None
        weight = run.link.weight
        column = np.eye(run.shape[2]) if weight is None else weight
        change[removed.time] = -run.input_value(removed) * column[:, removed.neuron]
    return change


def _transmitted(run: SpikeRun, before: _Rerun, removed: SpikeEvent) -> Array:
    """Return the change of the external drive of a layer."""
    link = run.link
    assert link is not None
    assert link.source is not None
    recorded = link.source.window(removed.batch, 0, len(before.spikes))
    change = before.spikes.astype(np.float64) - recorded
    if removed.layer == link.source.name and removed.time < len(change):
        change[removed.time, removed.neuron] -= 1.0
    return change if link.weight is None else change @ link.weight.T.astype(np.float64)


def _rerun(run: SpikeRun, drive_change: Array, removed: SpikeEvent) -> _Rerun:
    """Rerun one batch row of a layer next to the recording.

    A neuron that no change has reached spikes as recorded, so rounding changes nothing.

    Args:
        run: The layer.
        drive_change: Change of the external drive, (steps, neurons).
        removed: The spike that is not transmitted.
    """
    if any(run.dropped):
        raise SpikeError(
            f"but_for needs all spikes of {run.name!r}, and some before step "
            f"{run.dropped[0] + 1} were dropped; increase max_events"
        )
    steps, neurons = drive_change.shape
    recorded = run.window(removed.batch, 0, steps)
    spikes = recorded.copy()
    sent = np.zeros((steps, neurons))  # change of the transmitted spikes
    if removed.layer == run.name and removed.time < steps:
        sent[removed.time, removed.neuron] = -1.0
    base, other = (Neurons(run, removed.batch) for _ in range(2))
    changes = np.zeros((steps, neurons))
    drives = base.drives(recorded)
    for step in range(steps):
        base.integrate(step, drives[step])
        other.integrate(step, drives[step] + drive_change[step] + _arriving(run, sent, step))
        changes[step] = other.voltage - base.voltage
        spikes[step] = np.where(other.differs(base), other.fires(), recorded[step])
        sent[step] += spikes[step].astype(np.float64) - recorded[step]
        base.reset(step, recorded[step])
        other.reset(step, spikes[step])
    return _Rerun(spikes, changes)


def _arriving(run: SpikeRun, sent: Array, step: int) -> Array:
    """Return the change of the recurrent input in a step."""
    total = np.zeros(sent.shape[1])
    if run.taps is not None:
        for delay in range(1, min(len(run.taps), step) + 1):
            if sent[step - delay].any():
                total += run.taps[delay - 1] @ sent[step - delay]
    return total


def _differences(
    store: SpikeStore, results: dict[str, _Rerun], removed: SpikeEvent, event: SpikeEvent
) -> tuple[list[SpikeEvent], list[SpikeEvent]]:
    """Return the spikes up to an event that only the rerun has, and that only the recording has."""
    appeared: list[SpikeEvent] = []
    vanished: list[SpikeEvent] = []
    for name, result in results.items():
        recorded = store.runs[name].window(event.batch, 0, len(result.spikes))
        for time, neuron in np.argwhere(result.spikes != recorded):
            one = SpikeEvent(name, event.batch, int(time), int(neuron))
            (appeared if result.spikes[time, neuron] else vanished).append(one)
    return sorted(appeared, key=_by_time), sorted(vanished, key=_by_time)


def _by_time(event: SpikeEvent) -> tuple[int, SpikeEvent]:
    return event.time, event
