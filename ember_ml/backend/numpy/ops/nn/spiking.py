"""The scan of spiking neurons."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import native_spiking, spiking
from ember_ml.backend.numpy.native import frame


def spiking_scan(
    x,
    state,
    beta,
    threshold,
    alpha=None,
    rho=None,
    strength=None,
    taps=None,
    history=None,
    mask=None,
    reset="soft",
    refractory=0,
    surrogate="atan",
    slope=2.0,
):
    arrays = x, state, beta, threshold, alpha, rho, strength, taps, history, mask
    operands = spiking.Operands(*arrays)
    options = spiking.Options(reset, refractory, surrogate, slope)
    spiking.check(operands, options)
    if x.dtype == np.float16:
        wide = [a if a is None or a.dtype == bool else a.astype(np.float32) for a in arrays]
        outs = spiking_scan(*wide, **options._asdict())
        return tuple(out.astype(np.float16) for out in outs)
    if not x.shape[1]:
        return x.copy(), x.copy(), state.copy()
    access = frame(*arrays[:7])
    if access is not None and native_spiking.fits(operands, options):
        return native_spiking.forward(access, operands, options, _mask(mask))
    with np.errstate(all="ignore"):
        return spiking.scan(np, operands, options, lambda u: (u > 0).astype(u.dtype))


def _mask(mask: np.ndarray | None) -> np.ndarray | None:
    return None if mask is None else np.ascontiguousarray(mask, bool).view(np.uint8)


def _spiking_scan_adjoint(
    x,
    state,
    beta,
    threshold,
    spikes,
    voltages,
    g_spikes,
    g_voltages,
    g_last,
    alpha=None,
    rho=None,
    strength=None,
    taps=None,
    history=None,
    mask=None,
    reset="soft",
    refractory=0,
    surrogate="atan",
    slope=2.0,
):
    arrays = x, state, beta, threshold, alpha, rho, strength, taps, history, mask
    operands = spiking.Operands(*arrays)
    options = spiking.Options(reset, refractory, surrogate, slope)
    spiking.check(operands, options)
    outputs, cotangents = (spikes, voltages), (g_spikes, g_voltages, g_last)
    if any(y.shape != x.shape for y in (*outputs, *cotangents[:2])) or g_last.shape != state.shape:
        return None
    access = frame(*arrays[:7], *outputs, *cotangents)
    if access is None or not native_spiking.fits(operands, options):
        return None
    grads = native_spiking.adjoint(access, operands, options, _mask(mask), outputs, cotangents)
    return [np.zeros_like(beta) if g is None else g for g in grads[:9]]
