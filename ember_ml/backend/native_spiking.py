"""Arguments of the C kernels of spiking neurons, for the arrays of any framework."""

from __future__ import annotations

import struct
from collections.abc import Container
from typing import Any

from ember_ml._native.frame import Frame
from ember_ml.backend.spiking import RESETS, SURROGATES, Operands, Options

_COST = 4  # operations per neuron and step
_PARAMETERS = ("beta", "threshold", "alpha", "rho", "strength")


def fits(operands: Operands, options: Options) -> bool:
    """Return whether the kernels compute a scan: no synapses, and no refractory period.

    Args:
        operands: Arrays of the scan.
        options: Options of the scan.
    """
    shape = operands.x.shape
    return operands.taps is None and not options.refractory and 0 not in shape


def _arguments(
    frame: Frame, operands: Operands, options: Options, mask: Any
) -> tuple[list[Any], list[int]]:
    x, state, *parameters = operands[:7]
    batch, time, size = x.shape
    rows, *strides = frame.rows(x)
    arrays = [rows, frame.copy(state, tuple(state.shape))]
    arrays += [None if p is None else frame.copy(p, (size,)) for p in parameters]
    slots = frame.threads_for(batch * time * size * _COST)
    numbers = [batch, time, size, slots, RESETS.index(options.reset), *strides]
    return [*arrays, mask], numbers


def forward(frame: Frame, operands: Operands, options: Options, mask: Any) -> tuple[Any, Any, Any]:
    """Return the spikes, the voltages and the next state.

    Args:
        frame: Access to the arrays.
        operands: Arrays of a scan that fit.
        options: Options of the scan.
        mask: Contiguous mask of bytes, or None.
    """
    shape = tuple(operands.x.shape)
    outs = frame.empty(shape), frame.empty(shape), frame.empty(tuple(operands.state.shape))
    arrays, numbers = _arguments(frame, operands, options, mask)
    frame.call_arrays("ember_spiking_scan", [*arrays, *outs], numbers)
    return outs


def adjoint(
    frame: Frame,
    operands: Operands,
    options: Options,
    mask: Any,
    outputs: Any,
    cotangents: Any,
    needed: Container[str] = _PARAMETERS,
) -> Operands:
    """Return the gradients of the operands.

    Args:
        frame: Access to the arrays.
        operands: Arrays of a scan that fit.
        options: Options of the scan.
        mask: Contiguous mask of bytes, or None.
        outputs: Spikes and voltages of the scan.
        cotangents: Gradients of spikes, voltages and the next state; None for zeros.
        needed: Names of the parameters whose gradients are needed; the others get None.
    """
    shape, rows = tuple(operands.x.shape), tuple(operands.state.shape)
    batch, time, size = shape
    arrays, numbers = _arguments(frame, operands, options, mask)
    arrays += [frame.copy(x, shape) for x in outputs[:2]]
    given = [(None, 0, 0) if g is None else frame.rows(g) for g in cotangents[:2]]
    last = None if cotangents[2] is None else frame.copy(cotangents[2], rows)
    learned = [at for at, name in enumerate(_PARAMETERS) if name in needed]
    numbers += [SURROGATES.index(options.surrogate), int("beta" in needed)]
    numbers += [stride for _, *strides in given for stride in strides]
    numbers += struct.unpack("q", struct.pack("d", options.slope))
    trace = 2 * time * frame.size("ember_spiking_scan_block") if rows[1] > 1 else 0
    workspace = frame.empty((numbers[3] * trace,))
    grads = frame.empty(shape), frame.empty(rows)
    by_example = frame.empty((batch, 5, size)) if learned else None
    arrays += [*[g for g, *_ in given], last, workspace, *grads]
    frame.call_arrays("ember_spiking_scan_adjoint", [*arrays, by_example], numbers)
    sums: list[Any] = [None] * len(_PARAMETERS)
    if by_example is not None:
        total = by_example.sum(0)
        for at in learned:
            sums[at] = None if operands[2 + at] is None else total[at]
    return Operands(*grads, *sums)
