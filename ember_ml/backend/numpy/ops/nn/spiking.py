"""The scan of spiking neurons."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import spiking


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
    with np.errstate(all="ignore"):
        return spiking.scan(np, operands, options, lambda u: (u > 0).astype(u.dtype))
