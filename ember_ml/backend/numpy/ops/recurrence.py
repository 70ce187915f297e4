"""Linear recurrences: in place, step by step, with several chunks in parallel if they are long."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend import native_recurrence
from ember_ml.backend.numpy.native import frame
from ember_ml.backend.recurrences import chunk_length, geometry

_WHOLE_STEP = 1 << 12  # from this step size on, a second pass does not pay off
_SHORT = 24


def linear_recurrence(a, b, h0=None, axis=1, reverse=False):
    shape, state, axis = geometry(a.shape, b.shape, None if h0 is None else h0.shape, axis)
    a, b, h0 = np.asarray(a), np.asarray(b), None if h0 is None else np.asarray(h0)
    if b.dtype == np.float16:
        wide = [None if x is None else x.astype(np.float32) for x in (a, b, h0)]
        h, final = linear_recurrence(wide[0], wide[1], wide[2], axis, reverse)
        return h.astype(np.float16), final.astype(np.float16)
    native = frame(a, b, h0)
    if native is not None and 0 not in shape:
        return native_recurrence.forward(native, a, b, h0, shape, axis, reverse)
    start = np.zeros(state, b.dtype) if h0 is None else np.broadcast_to(h0, state)
    out = np.empty(shape, b.dtype)
    arrays = (np.broadcast_to(a, shape), np.broadcast_to(b, shape), out)
    # adds an axis of length 1, so that a step of a vector is an array, not a scalar
    in_time = [np.moveaxis(x, axis, 0)[:: -1 if reverse else 1, ..., None] for x in arrays]
    return out, np.array(_fill(in_time, start[..., None])[..., 0])


def _linear_recurrence_adjoint(a, states, g, g_last, h0=None, axis=1, reverse=False):
    operands = (a, states, g, g_last, h0)
    if states.dtype == np.float16:
        wide: Any = [None if x is None else x.astype(np.float32) for x in operands]
        a, states, g, g_last, h0 = wide
        grads: Any = _linear_recurrence_adjoint(a, states, g, g_last, h0, axis, reverse)
        return grads if grads is None else [x.astype(np.float16) for x in grads]
    native = frame(*operands)
    if native is None or 0 in states.shape:
        return None
    start = np.zeros((), a.dtype) if h0 is None else np.asarray(h0)
    return native_recurrence.adjoint(native, np.asarray(a), start, states, g, g_last, axis, reverse)


def _fill(arrays: Any, state: np.ndarray) -> np.ndarray:
    """Write the recurrence along the first axis into out; return the final state."""
    out = arrays[2]
    length = len(out)
    if length <= _SHORT or out[0].size >= _WHOLE_STEP:
        return _walk(arrays, state)
    size = chunk_length(length)
    whole = length - length % size
    a, b, out = [_chunks(x[:whole], size) for x in arrays]
    local = _walk((a, b, [np.empty_like(out[0])] * size), None)
    entering = np.empty_like(local)
    entering[0] = state
    _fill((np.prod(a, 0)[:-1], local[:-1], entering[1:]), state)
    state = _walk((a, b, out), entering)[-1]
    return _walk([x[whole:] for x in arrays], state)


def _chunks(x: np.ndarray, size: int) -> np.ndarray:
    """Return a view of shape (step in chunk, chunk, ...)."""
    strides = (x.strides[0], x.strides[0] * size, *x.strides[1:])
    shape = (size, len(x) // size, *x.shape[1:])
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def _walk(arrays: Any, state: np.ndarray) -> np.ndarray:
    for factor, entry, h in zip(*arrays, strict=True):
        if state is None:
            h[...] = entry
        else:
            np.multiply(factor, state, h)
            np.add(h, entry, h)
        state = h
    return state
