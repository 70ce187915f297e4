"""The scan of spiking neurons, shared by the backends.

It is written for any array module `xp` with the functions of NumPy that it calls: NumPy, MLX,
torch and `ember_ml.ops`. Faster kernels of a backend are tested against it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError

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
    if isinstance(options.slope, complex):
        raise ArgumentTypeError(f"spiking_scan: slope={options.slope!r} must be a real number")
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
        y = smooth(xp.where(xp.isinf(u), xp.zeros_like(u), u))  # y - y would be NaN
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
    flat: Any = None if taps is None else flat_taps(xp, taps)
    spikes, voltages = [], []
    for at in range(x.shape[1]):
        real = None if mask is None else mask[:, at : at + 1]
        drive = x[:, at]
        if taps is not None:
            window = xp.stack(past[at : at + taps.shape[0]], 1)
            drive = drive + xp.reshape(window, (x.shape[0], flat.shape[0])) @ flat
        if alpha is not None:
            current = hold(xp, real, alpha * current + drive, current)
            drive = current
        active = integrates(xp, real, resting)
        before = v
        v = hold(xp, active, beta * v + drive, v)
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
            adaptation = hold(xp, real, rho * adaptation + z, adaptation)
        if resting is not None:
            left = xp.where(resting > 0.0, resting - 1.0, xp.zeros_like(before))
            resting = hold(xp, real, left + options.refractory * fired, resting)
    rows = [row for row in (v, current, adaptation, resting) if row is not None]
    return xp.stack(spikes, 1), xp.stack(voltages, 1), xp.stack(rows, 1)


def hold(xp: Any, active: Any, new: Any, old: Any) -> Any:
    """Return the new values where a state changes, the old ones elsewhere; None: it always does."""
    return new if active is None else xp.where(active, new, old)


def integrates(xp: Any, real: Any, resting: Any) -> Any:
    """Return where neurons integrate their input: not at padding, and not while they rest."""
    awake = None if resting is None else resting <= 0.0
    if real is None or awake is None:
        return real if awake is None else awake
    return xp.where(real, awake, xp.zeros_like(awake))
