"""Content of a trace page as plain data."""

from __future__ import annotations

import math
from typing import Any

from ember_ml._core.errors import ArgumentError
from ember_ml.autodiff.causal import SpikeEvent
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.training.tracing.trace import Trace

MAX_SPIKES = 20_000
"""Maximum number of spikes on a page."""


def gather(trace: Trace, row: int, top: int) -> dict[str, Any]:
    """Return the layers, the spikes of a batch row and their causes.

    Args:
        trace: The recorded run.
        row: Row of the batch.
        top: Maximum number of causes of a spike.
    """
    store = trace.context.spike_store
    runs = list(store.runs.values())
    rows = runs[0].shape[0]
    if not 0 <= row < rows:
        raise ArgumentError(f"row {row} is out of range: the input has {rows} rows, from 0")
    events = sorted(trace.context.spikes(batch=row), key=lambda event: event.time)
    if len(events) > MAX_SPIKES:
        raise ArgumentError(
            f"row {row} has {len(events)} spikes, more than the {MAX_SPIKES} that a page shows; "
            "trace a shorter input"
        )
    inputs = [run for run in runs if _is_input(run)]
    layers = [*map(_input_layer, inputs), *(_layer(trace, run) for run in runs)]
    place = {layer["name"]: at for at, layer in enumerate(layers)}
    every = [*(event for run in inputs for event in _input_events(run, row)), *events]
    index = {event: at for at, event in enumerate(every)}
    return {
        "model": trace.model,
        "row": row,
        "loss": None if trace.loss is None else _number(trace.loss),
        "layers": layers,
        "spikes": [[place[event.layer], event.time, event.neuron] for event in every],
        "causes": [_causes(trace, event, index, top) for event in every],
    }


def _layer(trace: Trace, run: SpikeRun) -> dict[str, Any]:
    places = None if run.positions is None else run.positions.tolist()
    if places is not None:
        places = [[_number(value) for value in each] for each in places]
    return {
        "name": run.name,
        "kind": trace.kinds.get(run.name.partition(":")[0], "spiking layer"),
        "steps": run.shape[1],
        "neurons": run.shape[2],
        "positions": places,
    }


def _is_input(run: SpikeRun) -> bool:
    """Return whether a layer has inputs from outside that are spikes, all of the same size."""
    if run.link is None or run.link.source is not None:
        return False
    values = run.link.host_inputs()
    values = values[values != 0]
    return bool((values == values[:1]).all())


def _input_layer(run: SpikeRun) -> dict[str, Any]:
    assert run.link is not None
    _, steps, neurons = run.link.inputs.shape
    name = run.link.name
    return {"name": name, "kind": "inputs", "steps": steps, "neurons": neurons, "positions": None}


def _input_events(run: SpikeRun, row: int) -> list[SpikeEvent]:
    """Return the input spikes of a row."""
    assert run.link is not None
    times, neurons = run.link.host_inputs()[row].nonzero()
    return [
        SpikeEvent(run.link.name, row, time, neuron)
        for time, neuron in zip(times.tolist(), neurons.tolist(), strict=True)
    ]


def _causes(
    trace: Trace, event: SpikeEvent, index: dict[SpikeEvent, int], top: int
) -> dict[str, Any] | None:
    """Return the parts of the voltage of a spike; None for an input."""
    if event.layer not in trace.context.spike_store.runs:
        return None
    causes = trace.context.causes(event, None)
    on_page = [cause for cause in causes if cause.event in index]
    inputs = sum(cause.contribution for cause in causes if cause.event not in index)
    result = {
        "spikes": [[index[cause.event], _number(cause.contribution)] for cause in on_page[:top]],
        "external": _number(causes.external + inputs),
        "resets": _number(causes.resets),
        "initial": _number(causes.initial),
        "others": _number(sum(cause.contribution for cause in on_page[top:])),
        "voltage": _number(causes.voltage),
        "threshold": _number(causes.threshold),
        "magnitude": _number(causes.magnitude),
    }
    if trace.influence is not None:
        result["loss"] = _number(trace.influence[event])
    return result


def _number(value: float) -> float | None:
    """Return a number with the digits of float32; None if JSON cannot hold it."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
