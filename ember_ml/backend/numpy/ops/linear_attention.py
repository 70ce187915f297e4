"""Linear attention and the delta rule by the C kernels; otherwise the bodies compute them."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import native_linear_attention as native
from ember_ml.backend.numpy.native import frame


def _attend(query, key, value, decay=None, rate=None, bonus=None, state=None):
    operands = (query, key, value, decay, rate, bonus)
    access = frame(*operands, state)
    if access is None or not native.fits(operands, state):
        return None
    if not native.has_enough_heads(access, operands):
        return None
    start = None if state is None else np.ascontiguousarray(state)
    y, last, errors = native.forward(access, operands, start)
    empty = np.empty_like(y[:, :, :0])
    return y, empty if last is None else last, empty if errors is None else errors


def _attend_adjoint(
    query, key, value, g, g_last, saved, decay=None, rate=None, bonus=None, state=None
):
    operands = (query, key, value, decay, rate, bonus)
    access = frame(*operands, state, g, g_last, saved)
    errors = None if rate is None else saved
    into = None if state is None else np.ascontiguousarray(g_last)
    if access is None or not native.fits(operands, state, into, errors=errors, grad=g):
        return None
    start = None if state is None else np.ascontiguousarray(state)
    grads = native.adjoint(access, operands, start, errors, g, into)
    return [np.zeros((), query.dtype) if x is None else x for x in grads]
