"""How a spiking layer hands its run to the open causal tapes."""

from __future__ import annotations

import numpy as np

from ember_ml._core import recording
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.causal.spikes.dynamics import Array, Dynamics, Reset
from ember_ml.autodiff.causal.spikes.host import host
from ember_ml.autodiff.causal.spikes.inputs import InitialState
from ember_ml.autodiff.causal.spikes.links import find_link
from ember_ml.autodiff.causal.spikes.run import SpikeRun
from ember_ml.autodiff.values import is_differentiable, snapshot


def watch_drive(drive: Tensor) -> None:
    """Let the open causal tapes track the drive of a spiking layer, for `influence_on`.

    Call it before the layer computes its spikes. Without an open causal tape it does nothing.

    Args:
        drive: External input of each step, (batch, time, neurons).
    """
    for tape in recording.tapes():
        if tape.causal is not None and tape.causal.recording and is_differentiable(drive):
            tape.watch(drive)


def report_spikes(
    layer: object,
    spikes: Tensor,
    voltages: Tensor,
    drive: Tensor,
    state: Tensor | None,
    beta: Tensor,
    threshold: Tensor,
    alpha: Tensor | None = None,
    rho: Tensor | None = None,
    strength: Tensor | None = None,
    taps: Tensor | None = None,
    history: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    reset: Reset = "soft",
    refractory: int = 0,
    positions: Tensor | None = None,
) -> None:
    """Record a run of spiking neurons in the open causal tapes.

    Without an open causal tape it does nothing. From `drive` to `refractory` the arguments are
    those of `ops.spiking_scan`.

    Args:
        layer: The layer, or its name.
        spikes: Result of the scan, (batch, time, neurons), as the layer returns it.
        voltages: Voltages before the reset, (batch, time, neurons).
        drive: External input of each step, (batch, time, neurons).
        state: State before the first step, (batch, rows, neurons); None for zeros.
        beta: Decay of the voltage, (neurons,).
        threshold: Threshold without adaptation, (neurons,).
        alpha: Decay of the synaptic current.
        rho: Decay of the adaptation.
        strength: Increase of the threshold by one unit of adaptation, with `rho`.
        taps: Recurrent weights, (delays, neurons, neurons): `taps[d - 1, i, j]` from neuron j to
            neuron i with a delay of d steps; `synapse_taps` converts weights and delays.
        history: Spikes before the first step, the oldest first, (batch, delays, neurons).
        mask: (batch, time), False where the state does not change.
        reset: "soft", "hard" or "none".
        refractory: Number of steps that a neuron rests after a spike.
        positions: Coordinates of the neurons, (neurons, dimensions).
    """
    contexts = [
        tape.causal
        for tape in recording.tapes()
        if tape.causal is not None and tape.causal.recording
    ]
    if not contexts:
        return
    _check_shapes(layer, drive, spikes, voltages)
    neurons = spikes.shape[-1]
    dynamics = Dynamics(
        _per_neuron(beta, neurons),
        _per_neuron(threshold, neurons),
        None if alpha is None else _per_neuron(alpha, neurons),
        None if rho is None else _per_neuron(rho, neurons),
        None if strength is None else _per_neuron(strength, neurons),
        reset,
        refractory,
    )
    initial = _initial(state, history, dynamics)
    for context in contexts:
        run = SpikeRun(
            context.name_run(layer),
            dynamics,
            snapshot(drive),
            snapshot(spikes),
            snapshot(voltages),
            taps=_copy(taps),
            positions=_copy(positions),
            initial=initial,
            mask=_copy(mask),
        )
        run.link = find_link(context, run)
        context.spike_store.add(run)


def _check_shapes(layer: object, drive: Tensor, spikes: Tensor, voltages: Tensor) -> None:
    name = layer if isinstance(layer, str) else type(layer).__name__
    if spikes.ndim != 3 or not drive.shape == spikes.shape == voltages.shape:
        raise ShapeError(
            f"report_spikes of {name}: drive {drive.shape}, spikes {spikes.shape} and voltages "
            f"{voltages.shape} must have the same shape (batch, time, neurons)"
        )


def _per_neuron(values: Tensor, neurons: int) -> Array:
    """Return a copy of constants in float64, (neurons,)."""
    return np.broadcast_to(host(values).astype(np.float64), (neurons,)).copy()


def _copy(values: Tensor | None) -> Array | None:
    """Return a host copy, which training does not change."""
    return None if values is None else np.array(host(values))


def _initial(state: Tensor | None, history: Tensor | None, dynamics: Dynamics) -> InitialState:
    """Return the initial state from the rows of the scan's state; zeros are left out."""
    spikes = _nonzero(_copy(history))
    if state is None:
        return InitialState(spikes=spikes)
    rows = iter(np.moveaxis(np.array(host(state)), 1, 0))
    return InitialState(
        voltage=_nonzero(next(rows)),
        current=None if dynamics.alpha is None else _nonzero(next(rows)),
        adaptation=None if dynamics.rho is None else _nonzero(next(rows)),
        resting=_nonzero(next(rows)) if dynamics.refractory else None,
        spikes=spikes,
    )


def _nonzero(values: Array | None) -> Array | None:
    return values if values is not None and values.any() else None


def synapse_taps(weight: Array, delays: Array | None = None) -> Array:
    """Return recurrent weights with a delay per synapse as taps, (delays, neurons, neurons).

    Args:
        weight: (neurons, neurons); `weight[i, j]` is the weight from neuron j to neuron i.
        delays: Integers of the same shape, in steps, at least 1. Default: 1 everywhere.
    """
    weight = np.asarray(weight)
    delays = np.ones(weight.shape, int) if delays is None else np.asarray(delays)
    if delays.shape != weight.shape or weight.ndim != 2 or delays.min(initial=1) < 1:
        raise ArgumentError(
            f"synapse_taps: the delays {delays.shape} must be at least 1 and have the shape of the "
            f"weights {weight.shape}"
        )
    steps = np.arange(1, int(delays.max(initial=1)) + 1)
    return np.where(delays == steps[:, None, None], weight, 0.0).astype(weight.dtype)
