"""The scan of spiking neurons, with an adjoint of its own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend import spiking
from ember_ml.backend.spiking_adjoint import adjoint

_HALVES = (mx.float16, mx.bfloat16)


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
    arrays: tuple[Any, ...] = x, state, beta, threshold, alpha, rho, strength, taps, history
    options = spiking.Options(reset, refractory, surrogate, slope)
    spiking.check(spiking.Operands(*(*arrays, mask)), options)
    dtype = x.dtype
    if dtype in _HALVES:
        arrays = tuple(None if array is None else array.astype(mx.float32) for array in arrays)
    if not x.shape[1]:
        return mx.array(x), mx.array(x), mx.array(state)
    given = tuple(at for at, array in enumerate(arrays) if array is not None)
    present = [array for array in arrays if array is not None]
    if mask is not None:
        present.append(mask.astype(present[0].dtype))
    outs = _scan(options, given, mask is not None)(*present)
    return tuple(out.astype(dtype) for out in outs) if dtype in _HALVES else tuple(outs)


@functools.cache
def _scan(options: spiking.Options, given: tuple[int, ...], masked: bool) -> Any:
    """Return the scan of the given operands as a function with its own derivatives."""

    def operands(present: Sequence[mx.array]) -> spiking.Operands:
        arrays: list[Any] = [None] * len(spiking.Operands._fields)
        for at, array in zip(given, present, strict=False):
            arrays[at] = array
        if masked:
            arrays[-1] = present[-1] > 0
        return spiking.Operands(*arrays)

    def forward(*present: mx.array) -> tuple[mx.array, ...]:
        fire = functools.partial(spiking.heaviside, mx)
        return spiking.scan(mx, operands(present), options, fire)

    def smooth(*present: mx.array) -> tuple[mx.array, ...]:
        fire = spiking.smooth_fire(
            mx,
            mx.stop_gradient,
            lambda u: spiking.smooth_of(mx, u, options.surrogate, options.slope),
        )
        return spiking.scan(mx, operands(present), options, fire, mx.stop_gradient)

    def vjp(primals: Any, cotangents: Any, outputs: Any) -> tuple[mx.array, ...]:
        present = primals if isinstance(primals, (tuple, list)) else (primals,)
        grads = adjoint(mx, operands(present), options, outputs, cotangents, mx.stop_gradient)
        own = [grads[at] for at in given]
        return (*own, mx.zeros_like(present[-1])) if masked else tuple(own)

    def jvp(primals: Any, tangents: Any) -> tuple[mx.array, ...]:
        filled = [
            mx.zeros_like(x) if dx is None else dx for x, dx in zip(primals, tangents, strict=True)
        ]
        return tuple(mx.jvp(smooth, list(primals), filled)[1])

    function = mx.custom_function(forward)
    function.vjp(vjp)
    function.jvp(jvp)
    return function
