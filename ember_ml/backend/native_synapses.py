"""Arguments of the C kernels of synapses, for the arrays of any framework."""

from __future__ import annotations

import math
from typing import Any

from ember_ml._native.frame import Frame


def fits(operands: Any, sources: Any, targets: Any, size: int) -> bool:
    """Return whether shapes agree and indices are in range; the kernels do not check them.

    Args:
        operands: v, slopes, offsets and weights of `ops.synapses`.
        sources: Source neuron of each synapse.
        targets: Destination of each synapse.
        size: Number of destinations.
    """
    v, slopes, offsets, weights = operands
    if type(size) is not int or not v.shape or len(weights.shape) != 2 or len(sources.shape) != 1:
        return False
    count = sources.shape[0]
    shapes = [tuple(x.shape) for x in (slopes, offsets, targets)]
    if 0 in v.shape or not count or shapes != [(count,)] * 3 or weights.shape[1] != count:
        return False
    ranges = (sources, v.shape[-1]), (targets, size)
    return all(int(x.min()) >= 0 and int(x.max()) < limit for x, limit in ranges)


def _arguments(
    frame: Frame, operands: Any, sources: Any, targets: Any, size: int
) -> tuple[list[Any], list[int]]:
    arrays = [frame.copy(x, tuple(x.shape)) for x in operands]
    kinds, synapses = operands[3].shape
    neurons = operands[0].shape[-1]
    positions = math.prod(operands[0].shape[:-1])
    slots = min(positions, frame.threads_for(positions * synapses * 4))
    room = (2 * neurons + kinds * size) * frame.size("ember_synapses_block")
    workspace = frame.empty((slots * room,))
    return [*arrays, sources, targets, workspace], [
        positions,
        neurons,
        synapses,
        kinds,
        size,
        slots,
    ]


def forward(frame: Frame, operands: Any, sources: Any, targets: Any, size: int) -> Any:
    """Return the sums, (..., kinds * size).

    Args:
        frame: Access to the arrays.
        operands: v, slopes, offsets and weights of `ops.synapses`, which fit.
        sources: Contiguous array of int64.
        targets: Contiguous array of int64.
        size: Number of destinations.
    """
    arrays, numbers = _arguments(frame, operands, sources, targets, size)
    out = frame.empty((*operands[0].shape[:-1], operands[3].shape[0] * size))
    frame.call_arrays("ember_synapses", [*arrays, out], numbers)
    return out


def adjoint(
    frame: Frame, operands: Any, sources: Any, targets: Any, size: int, g: Any
) -> list[Any]:
    """Return the gradients of v, slopes, offsets and weights.

    Args:
        frame: Access to the arrays.
        operands: As in `forward`.
        sources: As in `forward`.
        targets: As in `forward`.
        size: Number of destinations.
        g: Gradient of the sums.
    """
    arrays, numbers = _arguments(frame, operands, sources, targets, size)
    kinds, synapses = operands[3].shape
    dv = frame.empty(tuple(operands[0].shape))
    sums = frame.empty((numbers[-1], 2 + kinds, synapses))
    arrays += [frame.copy(g, tuple(g.shape)), dv, sums]
    frame.call_arrays("ember_synapses_adjoint", arrays, numbers)
    total = sums.sum(0)
    return [dv, total[0], total[1], total[2:]]
