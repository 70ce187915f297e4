"""Closed-form and liquid cells by the C kernels; otherwise the bodies of the ops compute them."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import native_liquid as native
from ember_ml.backend import native_synapses
from ember_ml.backend.native_cells import have_shapes
from ember_ml.backend.numpy.native import frame


def _closed_form_steps(x, h0, weight_hh, weight=None, bias=None, timespans=None, gated=True):
    operands = (x, h0, weight_hh, weight, bias, timespans)
    access = frame(*operands)
    if access is None or not native.closed_form_fits(operands):
        return None
    y, (states, gates, inner, _) = native.closed_form(access, operands, gated)
    return y, states, gates, np.empty((*gates.shape[:2], 0), x.dtype) if inner is None else inner


def _closed_form_adjoint(
    x,
    h0,
    weight_hh,
    states,
    gates,
    inner,
    g,
    weight=None,
    bias=None,
    timespans=None,
    gated=True,
):
    operands = (x, h0, weight_hh, weight, bias, timespans)
    access = frame(*operands, states, gates, inner, g)
    if access is None or not native.closed_form_fits(operands):
        return None
    (batch, time, width), hidden = x.shape, h0.shape[1]
    parts = (3 if timespans is None else 4) * hidden
    shapes = (time + 1, batch, hidden), (time, batch, parts), (batch, time, hidden)
    if not have_shapes((states, gates, g), shapes):
        return None
    if inner.shape != (time, batch, 0 if weight is None else width):
        return None
    spans = None if timespans is None else native.spans_in_time(access, timespans, time, batch)
    saved = [np.ascontiguousarray(each) for each in (states, gates, inner)]
    grads = native.closed_form_adjoint(access, operands, gated, (*saved, spans), g)
    return [np.zeros((), x.dtype) if each is None else each for each in grads]


def _liquid_steps(x, v0, capacity, slopes, offsets, weights):
    operands = (x, v0, capacity, slopes, offsets, weights)
    access = frame(*operands)
    if access is None or not native.liquid_fits(operands):
        return None
    v, saved = native.liquid(access, *operands)
    return v, *saved


def _liquid_adjoint(x, v0, capacity, slopes, offsets, weights, states, below, opened, g):
    operands = (x, v0, capacity, slopes, offsets, weights)
    access = frame(*operands, states, below, opened, g)
    if access is None or not native.liquid_fits(operands):
        return None
    (batch, size), time, synapses = v0.shape, x.shape[1], len(slopes)
    shapes = (time + 1, batch, size), (time, batch, size), (time, batch, synapses)
    if not have_shapes((states, below, opened, g), (*shapes, (batch, time, size))):
        return None
    saved = [np.ascontiguousarray(each) for each in (states, below, opened)]
    return native.liquid_adjoint(access, operands, saved, g)


def _synapses_adjoint(v, slopes, offsets, weights, g, sources, destinations, size):
    operands = (v, slopes, offsets, weights)
    access = frame(*operands, g)
    if access is None or not native_synapses.fits(operands, sources, destinations, size):
        return None
    if g.shape != (*v.shape[:-1], len(weights) * size):
        return None
    index = [np.ascontiguousarray(each, np.int64) for each in (sources, destinations)]
    return native_synapses.adjoint(access, operands, index[0], index[1], size, g)
