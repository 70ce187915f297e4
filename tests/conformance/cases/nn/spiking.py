"""Rows for `ember_ml.ops.nn.spiking`.

The gradient of a spike is a surrogate, which no difference quotient shows. The rows that are tested
in float64, and so for their gradients, keep all voltages further than 1 from the threshold, where
the triangle is zero. `tests/unit/nn/test_spiking.py` compares surrogates with snnTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import FLOATS, Sample, case, mask, real

KEY = "nn.spiking.spiking_scan"


def scan(
    x: Any,
    state: Any,
    beta: Any,
    threshold: Any,
    alpha: Any = None,
    rho: Any = None,
    strength: Any = None,
    taps: Any = None,
    history: Any = None,
    mask: Any = None,
    reset: str = "soft",
    refractory: int = 0,
    **surrogate: Any,
) -> Any:
    """Compute neuron by neuron, with one synapse at a time."""
    batch, length, size = x.shape
    rows = iter(np.moveaxis(np.array(state), 1, 0))
    v = next(rows)
    current = None if alpha is None else next(rows)
    adaptation = None if rho is None else next(rows)
    rest = next(rows) if refractory else np.zeros((batch, size))
    delays = 0 if taps is None else len(taps)
    past = np.zeros((batch, delays + length, size))
    if delays:
        past[:, :delays] = history
    voltages = np.zeros(x.shape)
    for b, at, i in np.ndindex(batch, length, size):
        if mask is not None and not mask[b, at]:
            voltages[b, at, i] = v[b, i]
            continue
        drive = x[b, at, i]
        for d, j in np.ndindex(delays, size if delays else 0):
            drive += taps[d, i, j] * past[b, delays + at - d - 1, j]
        if current is not None:
            drive = current[b, i] = alpha[i] * current[b, i] + drive
        theta = threshold[i] + (0 if adaptation is None else strength[i] * adaptation[b, i])
        resting = refractory > 0 and rest[b, i] > 0
        v[b, i] = v[b, i] if resting else beta[i] * v[b, i] + drive
        voltages[b, at, i] = v[b, i]
        z = float(v[b, i] > theta and not resting)
        past[b, delays + at, i] = z
        v[b, i] -= {"soft": theta, "hard": v[b, i], "none": 0.0}[reset] * z
        if adaptation is not None:
            adaptation[b, i] = rho[i] * adaptation[b, i] + z
        rest[b, i] = max(rest[b, i] - 1, 0) + refractory * z
    last = [v, current, adaptation, rest if refractory else None]
    return past[:, delays:], voltages, np.stack([row for row in last if row is not None], 1)


def quiet(batch: int, rows: int, size: int) -> Sample:
    """Return a state whose last row, the number of steps left to rest, is 0."""

    def still(array: Any) -> Any:
        array[:, -1] = 0.0
        return array

    return real(batch, rows, size, low=-0.5, high=0.5, transform=still)


def between(low: float, high: float, *shape: int) -> Sample:
    return real(*shape, low=low, high=high)


for batch, time, size in ((2, 7, 3), (1, 1, 1), (3, 0, 2), (2, 12, 2)):
    currents, decays = between(-0.5, 1.5, batch, time, size), between(0.3, 0.9, size)
    heights, synapses = between(0.6, 1.2, size), between(-0.8, 0.8, 2, size, size)
    earlier = Sample((batch, 2, size), 0.0, 1.0, transform=np.round)
    lower = "float16", "bfloat16", "float32"
    start = [between(-0.5, 0.5, batch, rows, size) for rows in (1, 2, 3)]
    for reset in ("soft", "hard", "none"):
        case(KEY, currents, start[0], decays, heights, reference=scan, dtypes=lower, reset=reset)
    every = (decays, heights, decays, decays, between(0.1, 0.5, size), synapses, earlier)
    case(KEY, currents, start[2], *every, reference=scan, dtypes=lower)
    padding = mask(batch, time)
    case(
        KEY,
        currents,
        quiet(batch, 4, size),
        *every,
        padding,
        reference=scan,
        dtypes=lower,
        reset="hard",
        refractory=2,
    )
    case(
        KEY,
        currents,
        quiet(batch, 2, size),
        decays,
        heights,
        reference=scan,
        dtypes=lower,
        refractory=1,
        surrogate="sigmoid",
    )
    if not time:  # without a step, torch has no gradient of the parameters instead of zeros
        continue
    small, far = between(-0.1, 0.1, batch, time, size), between(2.5, 3.0, size)
    slow = between(0.1, 0.5, size)
    weak = between(-0.05, 0.05, 2, size, size)
    for reset, high in (("soft", 0.0), ("hard", 8.0), ("none", 8.0)):
        strong = between(high - 0.1, high + 0.1, batch, time, size)
        case(
            KEY,
            strong,
            start[0],
            slow,
            far,
            reference=scan,
            dtypes=FLOATS,
            reset=reset,
            surrogate="triangle",
            slope=1.0,
        )
    case(
        KEY,
        small,
        start[2],
        slow,
        far,
        slow,
        slow,
        between(0.1, 0.3, size),
        weak,
        between(0.1, 1.0, batch, 2, size),
        reference=scan,
        dtypes=FLOATS,
        surrogate="triangle",
        slope=1.0,
    )


def adjoint(
    x: Any,
    state: Any,
    beta: Any,
    threshold: Any,
    spikes: Any,
    voltages: Any,
    g_spikes: Any,
    g_voltages: Any,
    g_last: Any,
    **options: Any,
) -> Any:
    """Compute the gradients of neurons without spikes, far below the threshold, step by step."""
    into, later = np.zeros(x.shape), g_last[:, 0]
    of_beta = np.zeros(beta.shape)
    for at in reversed(range(x.shape[1])):
        into[:, at] = g_voltages[:, at] + later
        before = voltages[:, at - 1] if at else state[:, 0]
        of_beta += (into[:, at] * before).sum(0)
        later = beta * into[:, at]
    missing = [np.zeros(beta.shape)] * 5
    return into, later[:, None], of_beta, np.zeros(threshold.shape), *missing


case(
    "nn.spiking._spiking_scan_adjoint",
    *(real(2, 7, 3), real(2, 1, 3), real(3, low=0.1, high=0.9), real(3, low=8.0, high=9.0)),
    *(real(2, 7, 3, low=0.0, high=0.0), *[real(2, 7, 3)] * 3, real(2, 1, 3)),
    reference=adjoint,
    surrogate="triangle",
    dtypes=("float32",),
)
