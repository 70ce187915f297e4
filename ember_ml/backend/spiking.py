"""The scan of spiking neurons and its adjoint, shared by the backends.

Both are written for any array module `xp` with the functions of NumPy that they call: NumPy, MLX,
torch and `ember_ml.ops`. Faster kernels of a backend are tested against them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ember_ml._core.errors import ArgumentError, ShapeError

RESETS = ("soft", "hard", "none")
SURROGATES = ("fast_sigmoid", "atan", "sigmoid", "triangle", "straight_through")


class Operands(NamedTuple):
    """Arrays of a scan, as in `ops.spiking_scan`."""

    x: Any
    state: Any
    beta: Any
    threshold: Any
    alpha: Any = None
    rho: Any = None
    strength: Any = None
    taps: Any = None
    history: Any = None
    mask: Any = None


class Options(NamedTuple):
    """Reset, refractory period and surrogate gradient of a scan, as in `ops.spiking_scan`."""

    reset: str = "soft"
    refractory: int = 0
    surrogate: str = "atan"
    slope: float = 2.0


class States(NamedTuple):
    """Rows of the state: voltage, synaptic current, adaptation, remaining refractory steps."""

    v: Any
    current: Any = None
    adaptation: Any = None
    resting: Any = None


def check(operands: Operands, options: Options) -> None:
    """Raise unless the options are known and the shapes agree.

    Args:
        operands: Arrays of the scan.
        options: Options of the scan.
    """
    if options.reset not in RESETS:
        raise ArgumentError(f"spiking_scan: reset={options.reset!r} must be one of {RESETS}")
    if options.surrogate not in SURROGATES:
        raise ArgumentError(
            f"spiking_scan: surrogate={options.surrogate!r} must be one of {SURROGATES}"
        )
    if isinstance(options.refractory, bool) or not isinstance(options.refractory, int):
        raise ArgumentError(f"spiking_scan: refractory={options.refractory!r} must be an integer")
    if options.refractory < 0:
        raise ArgumentError(f"spiking_scan: refractory={options.refractory} must be at least 0")
    for one, other in (("rho", "strength"), ("taps", "history")):
        if (getattr(operands, one) is None) != (getattr(operands, other) is None):
            raise ArgumentError(f"spiking_scan: pass {one} and {other} together, or neither")
    _check_shapes(operands, options)


def _check_shapes(operands: Operands, options: Options) -> None:
    x = operands.x
    if len(x.shape) != 3:
        raise ShapeError(
            f"spiking_scan: x has shape {tuple(x.shape)}; expected (batch, time, neurons)"
        )
    batch, time, size = x.shape
    delays = 0 if operands.taps is None or not operands.taps.shape else operands.taps.shape[0]
    expected = {
        "state": (batch, num_states(operands, options), size),
        "taps": (delays, size, size),
        "history": (batch, delays, size),
        "mask": (batch, time),
    }
    for name, array in zip(Operands._fields[1:], operands[1:], strict=True):
        shape = expected.get(name, (size,))
        if array is not None and tuple(array.shape) != shape:
            raise ShapeError(
                f"spiking_scan: {name} has shape {tuple(array.shape)}; expected {shape} for x of "
                f"shape {tuple(x.shape)}"
            )


def num_states(operands: Operands, options: Options) -> int:
    """Return the number of rows of the state.

    Args:
        operands: Arrays of the scan.
        options: Options of the scan.
    """
    return 1 + (operands.alpha is not None) + (operands.rho is not None) + (options.refractory > 0)


def split_state(state: Any, operands: Operands, options: Options) -> States:
    """Return the rows of a state, each (batch, neurons); None for those that it does not have.

    Args:
        state: (batch, rows, neurons).
        operands: Arrays of the scan.
        options: Options of the scan.
    """
    rows = iter(range(state.shape[1]))
    has = (True, operands.alpha is not None, operands.rho is not None, options.refractory > 0)
    return States(*[state[:, next(rows)] if each else None for each in has])


def slope_of(xp: Any, u: Any, surrogate: str, slope: float) -> Any:
    """Return the surrogate derivative of a spike by the distance u to the threshold.

    Args:
        xp: Array module.
        u: Voltage minus threshold.
        surrogate: Name of the surrogate.
        slope: Its parameter.
    """
    distance = xp.abs(u)
    if surrogate == "fast_sigmoid":
        root = 1.0 / (1.0 + slope * distance)
        return root * root
    if surrogate == "atan":
        scaled = (0.5 * math.pi * slope) * u
        return (0.5 * slope) / (1.0 + scaled * scaled)
    if surrogate == "sigmoid":
        decay = xp.exp(-slope * distance)
        return slope * decay / ((1.0 + decay) * (1.0 + decay))
    if surrogate == "triangle":
        return xp.where(distance < 1.0, slope * (1.0 - distance), xp.zeros_like(u))
    return slope * xp.ones_like(u)


def smooth_of(xp: Any, u: Any, surrogate: str, slope: float) -> Any:
    """Return the smooth function whose derivative is `slope_of`; the arguments are the same."""
    if surrogate == "fast_sigmoid":
        return u / (1.0 + slope * xp.abs(u))
    if surrogate == "atan":
        return xp.arctan((0.5 * math.pi * slope) * u) / math.pi
    if surrogate == "sigmoid":
        return xp.sigmoid(slope * u)
    if surrogate == "triangle":
        inside = xp.where(xp.abs(u) < 1.0, u, xp.zeros_like(u))
        return slope * (inside - 0.5 * inside * xp.abs(inside))
    return slope * u


def heaviside(xp: Any, u: Any) -> Any:
    """Return 1 where u > 0, otherwise 0."""
    return xp.where(u > 0.0, xp.ones_like(u), xp.zeros_like(u))


def smooth_fire(xp: Any, stop: Callable[[Any], Any], smooth: Callable[[Any], Any]) -> Any:
    """Return a function that fires like `heaviside` and has the derivative of `smooth`.

    Args:
        xp: Array module.
        stop: Function that stops gradients.
        smooth: Smooth function of the distance to the threshold.
    """

    def fire(u: Any) -> Any:
        y = smooth(u)
        return stop(heaviside(xp, u)) + (y - stop(y))

    return fire


def flat_taps(xp: Any, taps: Any) -> Any:
    """Return the matrix that maps the last spikes, oldest first, to currents.

    Args:
        xp: Array module.
        taps: (delays, neurons, neurons).

    Returns:
        (delays * neurons, neurons).
    """
    delays, size = taps.shape[:2]
    return xp.reshape(xp.stack([taps[d].T for d in reversed(range(delays))], 0), (-1, size))


def scan(
    xp: Any,
    operands: Operands,
    options: Options,
    fire: Callable[[Any], Any],
    stop: Callable[[Any], Any] = lambda x: x,
) -> tuple[Any, Any, Any]:
    """Return the spikes, the voltages before the reset and the next state, step by step.

    Args:
        xp: Array module.
        operands: Arrays of the scan, at least one step long.
        options: Options of the scan.
        fire: Function of the distance to the threshold that returns spikes.
        stop: Function that stops gradients. Default: the identity.
    """
    x, state, beta, threshold, alpha, rho, strength, taps, history, mask = operands
    v, current, adaptation, resting = split_state(state, operands, options)
    past = [] if taps is None else [history[:, at] for at in range(taps.shape[0])]
    flat = None if taps is None else flat_taps(xp, taps)
    spikes, voltages = [], []
    for at in range(x.shape[1]):
        real = None if mask is None else mask[:, at : at + 1]
        drive = x[:, at]
        if taps is not None:
            window = xp.stack(past[at : at + taps.shape[0]], 1)
            drive = drive + xp.reshape(window, (x.shape[0], flat.shape[0])) @ flat
        if alpha is not None:
            current = _hold(xp, real, alpha * current + drive, current)
            drive = current
        active = _active(xp, real, resting)
        before = v
        v = _hold(xp, active, beta * v + drive, v)
        theta = threshold if rho is None else threshold + strength * adaptation
        z = fire(v - theta)
        z = z if active is None else xp.where(active, z, xp.zeros_like(z))
        spikes.append(z)
        voltages.append(v)
        past.append(z)
        fired = stop(z)
        if options.reset == "soft":
            v = v - theta * fired
        elif options.reset == "hard":
            v = v * (1.0 - fired)
        if rho is not None:
            adaptation = _hold(xp, real, rho * adaptation + z, adaptation)
        if resting is not None:
            left = xp.where(resting > 0.0, resting - 1.0, xp.zeros_like(before))
            resting = _hold(xp, real, left + options.refractory * fired, resting)
    rows = [row for row in (v, current, adaptation, resting) if row is not None]
    return xp.stack(spikes, 1), xp.stack(voltages, 1), xp.stack(rows, 1)


def _hold(xp: Any, active: Any, new: Any, old: Any) -> Any:
    return new if active is None else xp.where(active, new, old)


def _active(xp: Any, real: Any, resting: Any) -> Any:
    """Return where neurons integrate their input: not at padding, and not while they rest."""
    awake = None if resting is None else resting <= 0.0
    if real is None or awake is None:
        return real if awake is None else awake
    return xp.where(real, awake, xp.zeros_like(awake))


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
        entries = (_active(xp, real, resting), v, current, adaptation, theta)
        for values, entry in zip(trace, entries, strict=True):
            values.append(entry)
        if alpha is not None:
            drive = x[:, at]
            if flat is not None:
                window = xp.stack(past[at : at + taps.shape[0]], 1)
                drive = drive + xp.reshape(window, (x.shape[0], flat.shape[0])) @ flat
            current = _hold(xp, real, alpha * current + drive, current)
        past.append(z)
        v = voltage
        if options.reset == "soft":
            v = v - theta * z
        elif options.reset == "hard":
            v = v * (1.0 - z)
        if rho is not None:
            adaptation = _hold(xp, real, rho * adaptation + z, adaptation)
        if resting is not None:
            left = xp.where(resting > 0.0, resting - 1.0, xp.zeros_like(resting))
            resting = _hold(xp, real, left + options.refractory * z, resting)
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
            g_z = g_z + _hold(xp, real, g_adaptation, zero)
        if back is not None:
            window = xp.stack(g_drives[at + 1 : at + 1 + delays], 1)
            g_z = g_z + xp.reshape(window, (x.shape[0], back.shape[0])) @ back
        g_u = g_z * slope_of(xp, voltages[at] - theta, options.surrogate, options.slope)
        g_u = _hold(xp, active, g_u, zero)
        g_theta = -g_u
        if options.reset == "soft":
            g_theta = g_theta - g_v * z
        g_voltage = g_u + cotangents[1][:, at]
        g_voltage = g_voltage + (g_v * (1.0 - z) if options.reset == "hard" else g_v)
        g_drive = _hold(xp, active, g_voltage, zero)
        g_beta = g_beta + g_drive * trace.v[at]
        g_v = _hold(xp, active, beta * g_voltage, g_voltage)
        g_threshold = g_threshold + g_theta
        if rho is not None:
            g_strength = g_strength + g_theta * trace.adaptation[at]
            g_rho = g_rho + _hold(xp, real, g_adaptation * trace.adaptation[at], zero)
            g_adaptation = g_theta * strength + _hold(xp, real, rho * g_adaptation, g_adaptation)
        if alpha is not None:
            total = g_current + g_drive
            g_drive = _hold(xp, real, total, zero)
            g_alpha = g_alpha + g_drive * trace.current[at]
            g_current = _hold(xp, real, alpha * total, total)
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
