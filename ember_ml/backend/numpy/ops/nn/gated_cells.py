"""LSTM and GRU by the C kernels; otherwise the bodies of the ops compute them."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import native_cells as native
from ember_ml.backend.numpy.native import frame


def _lstm_steps(x, h0, c0, weight_ih, weight_hh, bias=None):
    operands = (x, h0, c0, weight_ih, weight_hh, bias)
    access = frame(*operands)
    if access is None or not native.fits(4, x, (h0, c0), weight_ih, weight_hh, bias):
        return None
    results, (entered, cells, gates) = native.lstm(access, *operands)
    if entered.shape[2] == h0.shape[1]:
        entered = np.concatenate([entered, x.swapaxes(0, 1)], -1)
    return *results, entered, cells, gates


def _lstm_adjoint(x, h0, c0, weight_ih, weight_hh, entered, cells, gates, g, g_h, g_c, bias=None):
    saved, cotangents = (entered, cells, gates), (g, g_h, g_c)
    access = frame(x, h0, c0, weight_ih, weight_hh, *saved, *cotangents, bias)
    states = (h0, c0, g_h, g_c)
    if access is None or not native.fits(4, x, states, weight_ih, weight_hh, bias):
        return None
    (batch, time, features), hidden = x.shape, h0.shape[1]
    shapes = [(time, batch, hidden + features), (time + 1, batch, hidden)]
    shapes += [(time, batch, 4 * hidden), (batch, time, hidden)]
    if not native.have_shapes((*saved, g), shapes):
        return None
    dense = [np.ascontiguousarray(each) for each in saved]
    return native.lstm_adjoint(access, x, weight_ih, weight_hh, dense, cotangents)


def _gru_steps(x, h0, weight_ih, weight_hh, bias_ih=None, bias_hh=None):
    operands = (x, h0, weight_ih, weight_hh, bias_ih, bias_hh)
    access = frame(*operands)
    if access is None or not native.fits(3, x, (h0,), weight_ih, weight_hh, bias_ih, bias_hh):
        return None
    results, saved = native.gru(access, *operands)
    return *results, *saved


def _gru_adjoint(x, h0, weight_ih, weight_hh, states, gates, g, g_h, bias_ih=None, bias_hh=None):
    saved, cotangents = (states, gates), (g, g_h)
    access = frame(x, h0, weight_ih, weight_hh, *saved, *cotangents, bias_ih, bias_hh)
    if access is None or not native.fits(3, x, (h0, g_h), weight_ih, weight_hh, bias_ih, bias_hh):
        return None
    (batch, time, _), hidden = x.shape, h0.shape[1]
    shapes = (time + 1, batch, hidden), (time, batch, 4 * hidden), (batch, time, hidden)
    if not native.have_shapes((*saved, g), shapes):
        return None
    dense = [np.ascontiguousarray(each) for each in saved]
    return native.gru_adjoint(access, x, weight_ih, weight_hh, dense, cotangents)
