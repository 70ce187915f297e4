"""The adjoint of the scan of spiking neurons, shared by the backends, for any array module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml.backend.spiking import (
    Operands,
    Options,
    flat_taps,
    hold,
    integrates,
    slope_of,
    split_state,
)


class _Trace(NamedTuple):
    """Values of each step that the adjoint needs; lists of (batch, neurons)."""

    active: list[Any]
    v: list[Any]  # before the step
    current: list[Any]  # before the step
    adaptation: list[Any]  # before the step
    theta: list[Any]


def _replay(
    xp: Any, operands: Operands, options: Options, spikes: list[Any], voltages: list[Any]
) -> _Trace:
    """Return the states before each step, from the spikes and voltages of the scan."""
    x, state, _, threshold, alpha, rho, strength, taps, history, mask = operands
    v, current, adaptation, resting = split_state(state, operands, options)
    past = [] if taps is None else [history[:, at] for at in range(taps.shape[0])]
    flat = None if taps is None or alpha is None else flat_taps(xp, taps)
    trace = _Trace([], [], [], [], [])
    for at, (z, voltage) in enumerate(zip(spikes, voltages, strict=True)):
        real = None if mask is None else mask[:, at : at + 1]
        theta = threshold if rho is None else threshold + strength * adaptation
        entries = (integrates(xp, real, resting), v, current, adaptation, theta)
        for values, entry in zip(trace, entries, strict=True):
            values.append(entry)
        if alpha is not None:
            drive = x[:, at]
            if flat is not None:
                window = xp.stack(past[at : at + taps.shape[0]], 1)
                drive = drive + xp.reshape(window, (x.shape[0], flat.shape[0])) @ flat
            current = hold(xp, real, alpha * current + drive, current)
        past.append(z)
        v = voltage
        if options.reset == "soft":
            v = v - theta * z
        elif options.reset == "hard":
            v = v * (1.0 - z)
        if rho is not None:
            adaptation = hold(xp, real, rho * adaptation + z, adaptation)
        if resting is not None:
            left = xp.where(resting > 0.0, resting - 1.0, xp.zeros_like(resting))
            resting = hold(xp, real, left + options.refractory * z, resting)
    return trace


def adjoint(
    xp: Any,
    operands: Operands,
    options: Options,
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
    stop: Callable[[Any], Any] = lambda x: x,
) -> Operands:
    """Return the gradients of the operands, backward in time.

    A spike has the surrogate derivative; the spikes in the reset are constants.

    Args:
        xp: Array module.
        operands: Arrays of the scan, at least one step long.
        options: Options of the scan.
        outputs: Spikes and voltages before the reset, as `scan` returns them.
        cotangents: Gradients of spikes, voltages and the next state.
        stop: Function that stops gradients. Default: the identity.
    """
    x, _, beta, _, alpha, rho, strength, taps, _, mask = operands
    length = x.shape[1]
    spikes = [stop(outputs[0][:, at]) for at in range(length)]
    voltages = [outputs[1][:, at] for at in range(length)]
    trace = _replay(xp, operands, options, spikes, voltages)
    g_v, g_current, g_adaptation, _ = split_state(cotangents[2], operands, options)
    zero = xp.zeros_like(g_v)
    g_beta, g_threshold, g_alpha, g_rho, g_strength = [zero] * 5
    delays = 0 if taps is None else taps.shape[0]
    g_drives = [zero] * (length + delays)
    back = None if taps is None else xp.reshape(taps, (delays * taps.shape[1], taps.shape[2]))
    for at in reversed(range(length)):
        z, theta, active = spikes[at], trace.theta[at], trace.active[at]
        real = None if mask is None else mask[:, at : at + 1]
        g_z = cotangents[0][:, at]
        if rho is not None:
            g_z = g_z + hold(xp, real, g_adaptation, zero)
        if back is not None:
            window = xp.stack(g_drives[at + 1 : at + 1 + delays], 1)
            g_z = g_z + xp.reshape(window, (x.shape[0], back.shape[0])) @ back
        g_u = g_z * slope_of(xp, voltages[at] - theta, options.surrogate, options.slope)
        g_u = hold(xp, active, g_u, zero)
        g_theta = -g_u
        if options.reset == "soft":
            g_theta = g_theta - g_v * z
        g_voltage = g_u + cotangents[1][:, at]
        g_voltage = g_voltage + (g_v * (1.0 - z) if options.reset == "hard" else g_v)
        g_drive = hold(xp, active, g_voltage, zero)
        g_beta = g_beta + g_drive * trace.v[at]
        g_v = hold(xp, active, beta * g_voltage, g_voltage)
        g_threshold = g_threshold + g_theta
        if rho is not None:
            g_strength = g_strength + g_theta * trace.adaptation[at]
            g_rho = g_rho + hold(xp, real, g_adaptation * trace.adaptation[at], zero)
            g_adaptation = g_theta * strength + hold(xp, real, rho * g_adaptation, g_adaptation)
        if alpha is not None:
            total = g_current + g_drive
            g_drive = hold(xp, real, total, zero)
            g_alpha = g_alpha + g_drive * trace.current[at]
            g_current = hold(xp, real, alpha * total, total)
        g_drives[at] = g_drive
    rows = [g_v, g_current, g_adaptation, zero if options.refractory else None]
    g_taps, g_history = None, None
    if taps is not None:
        g_taps, g_history = _synapses(xp, operands, spikes, g_drives)
    return Operands(
        xp.stack(g_drives[:length], 1),
        xp.stack([row for row in rows if row is not None], 1),
        xp.sum(g_beta, 0),
        xp.sum(g_threshold, 0),
        None if alpha is None else xp.sum(g_alpha, 0),
        None if rho is None else xp.sum(g_rho, 0),
        None if rho is None else xp.sum(g_strength, 0),
        g_taps,
        g_history,
    )


def _synapses(
    xp: Any, operands: Operands, spikes: list[Any], g_drives: list[Any]
) -> tuple[Any, Any]:
    """Return the gradients of the taps and of the spikes before the first step."""
    x, taps, history = operands.x, operands.taps, operands.history
    delays, size, _ = taps.shape
    length = x.shape[1]
    past = [*[history[:, at] for at in range(delays)], *spikes]
    g_all = xp.reshape(xp.stack(g_drives[:length], 0), (length * x.shape[0], size)).T
    g_taps = []
    for delay in range(1, delays + 1):
        source = xp.stack(past[delays - delay : delays - delay + length], 0)
        g_taps.append(g_all @ xp.reshape(source, (length * x.shape[0], size)))
    g_history = []
    for at in range(delays):  # a spike this many steps after the oldest one
        reached = range(delays - at, delays + 1)
        steps = [(delay, delay - (delays - at)) for delay in reached]
        parts = [g_drives[to] @ taps[delay - 1] for delay, to in steps if to < length]
        g_history.append(sum(parts[1:], parts[0]))
    return xp.stack(g_taps, 0), xp.stack(g_history, 1)
