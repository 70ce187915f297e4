"""Recurrent layers with torch's fused kernels; higher derivatives are computed step by step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from ember_ml._native.frame import Frame
from ember_ml.backend import cell_shapes, native_liquid
from ember_ml.backend.torch import loops, native_loops, opaque_cells
from ember_ml.backend.torch.custom import custom_vjp, fused_once
from ember_ml.backend.torch.fusion import fused, fusible
from ember_ml.backend.torch.native import frame
from ember_ml.backend.torch.nesting import in_transform, is_tracked
from ember_ml.backend.torch.synapses import synapses as synapses

_HALVES = (torch.float16, torch.bfloat16)


def lstm(
    x: torch.Tensor,
    h0: torch.Tensor,
    c0: torch.Tensor,
    weight_ih: torch.Tensor,
    weight_hh: torch.Tensor,
    bias_ih: torch.Tensor | None = None,
    bias_hh: torch.Tensor | None = None,
) -> tuple[Any, Any, Any]:
    weights = weight_ih, weight_hh, bias_ih, bias_hh
    cell_shapes.check_gated("lstm", 4, x, (h0, c0), *weights)
    arrays = x, h0, c0, *weights
    return _run(_fused_lstm, _stepwise_lstm, native_loops.lstm, opaque_cells.lstm, arrays)


def gru(
    x: torch.Tensor,
    h0: torch.Tensor,
    weight_ih: torch.Tensor,
    weight_hh: torch.Tensor,
    bias_ih: torch.Tensor | None = None,
    bias_hh: torch.Tensor | None = None,
) -> tuple[Any, Any]:
    weights = weight_ih, weight_hh, bias_ih, bias_hh
    cell_shapes.check_gated("gru", 3, x, (h0,), *weights)
    arrays = x, h0, *weights
    return _run(_fused_gru, _stepwise_gru, native_loops.gru, opaque_cells.gru, arrays)


def closed_form(
    x: torch.Tensor,
    h0: torch.Tensor,
    weight_hh: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    timespans: torch.Tensor | None = None,
    gated: bool = True,
) -> torch.Tensor:
    stepwise = functools.partial(_stepwise_closed_form, gated=gated)
    arrays = x, h0, weight_hh, weight, bias, timespans
    cell_shapes.check_closed_form(*arrays)
    passes = functools.partial(native_loops.closed_form, gated=gated)
    if torch.compiler.is_compiling() and _is_opaque(native_liquid.closed_form_fits, arrays):
        return opaque_cells.closed_form(arrays, gated)
    fits = native_liquid.closed_form_fits
    return _by_hand(loops.ClosedForm(gated), stepwise, passes, fits, arrays)


def liquid(
    x: torch.Tensor,
    v0: torch.Tensor,
    capacity: torch.Tensor,
    slopes: torch.Tensor,
    offsets: torch.Tensor,
    weights: torch.Tensor,
) -> torch.Tensor:
    arrays = x, v0, capacity, slopes, offsets, weights
    cell_shapes.check_liquid(*arrays)
    if torch.compiler.is_compiling() and _is_opaque(native_liquid.liquid_fits, arrays):
        return opaque_cells.liquid(arrays)
    fits = native_liquid.liquid_fits
    return _by_hand(loops.Liquid(), _stepwise_liquid, native_loops.liquid, fits, arrays)


def _is_opaque(fits: Callable[[Sequence[Any]], bool], arrays: Sequence[Any]) -> bool:
    return opaque_cells.accepts(arrays) and fits(arrays)


def _by_hand(
    loop: Any,
    stepwise: Callable[..., Any],
    passes: Callable[..., native_loops.Pair],
    fits: Callable[[Sequence[Any]], bool],
    arrays: Sequence[Any],
) -> torch.Tensor:
    """Use C kernels, or a loop with a hand-written gradient; half precision in float32."""
    dtype = arrays[0].dtype
    if dtype in _HALVES:
        wide = [None if x is None else x.float() for x in arrays]
        return _by_hand(loop, stepwise, passes, fits, wide).to(dtype)
    if not arrays[0].shape[1] or torch.compiler.is_compiling() or in_transform():
        return stepwise(*arrays)
    access = _access(arrays) if fits(arrays) else None
    if access is not None:
        return fused(*passes(access), stepwise, *arrays)
    given = [at for at, x in enumerate(arrays) if x is not None]

    def filled(present: Sequence[Any]) -> list[Any]:
        places = dict(zip(given, present, strict=True))
        return [places.get(at) for at in range(len(arrays))]

    def forward(*present: Any) -> list[torch.Tensor]:
        return [loop.forward(*filled(present))]

    def pull(present: Sequence[Any], cotangents: Sequence[Any], again: bool) -> Sequence[Any]:
        if again:
            function = torch.func.vjp(lambda *some: stepwise(*filled(some)), *present)[1]
            return function(cotangents[0])
        grads = loop.backward(filled(present), cotangents[0])
        return [g for g in grads if g is not None]

    return custom_vjp(forward, pull, [x for x in arrays if x is not None])[0]


def _access(arrays: Sequence[Any]) -> Frame | None:
    """Return the access of the C kernels to tensors that are not empty, or None.

    `torch.autocast` would change the precision of the products before the kernels.
    """
    if torch.is_autocast_enabled("cpu") or not fusible(*arrays):
        return None
    if any(x is not None and not x.numel() for x in arrays):
        return None
    return frame(*arrays)


def _run(
    kernel: Callable[..., Any],
    stepwise: Callable[..., Any],
    passes: Callable[..., native_loops.Pair],
    opaque: opaque_cells.OpaqueCell,
    arrays: Sequence[Any],
) -> tuple[torch.Tensor, ...]:
    """Use the C kernels or torch's fused kernel where possible; half precision in float32."""
    x = arrays[0]
    dtype = x.dtype
    if dtype in _HALVES:
        wide = [None if x is None else x.float() for x in arrays]
        return tuple(out.to(dtype) for out in _run(kernel, stepwise, passes, opaque, wide))
    if torch.compiler.is_compiling():
        return opaque(arrays) if opaque_cells.accepts(arrays) else stepwise(*arrays)
    if not arrays[0].shape[1]:
        return stepwise(*arrays)
    if torch.is_autocast_enabled("cpu") and x.device.type == "cpu":
        # oneDNN has no LSTM in bfloat16 for many processors, so the layer runs in float32.
        with torch.autocast("cpu", enabled=False):
            outs = _run(kernel, stepwise, passes, opaque, arrays)
        narrow = torch.get_autocast_dtype("cpu") if dtype is torch.float32 else dtype
        return tuple(out.to(narrow) for out in outs)
    single = x.shape[1] == 1 and not is_tracked(*arrays)  # torch's own step is as fast
    access = None if single else _access(arrays)
    if access is not None:
        return fused(*passes(access), stepwise, *arrays)
    return fused_once(kernel, stepwise, arrays, order=-1)


def _weights(weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any) -> list[Any]:
    """Return the weights for the kernels: with both biases, or with none."""
    if bias_ih is None and bias_hh is None:
        return [weight_ih, weight_hh]
    zeros = weight_ih.new_zeros(len(weight_ih))
    biases = [zeros if bias is None else bias for bias in (bias_ih, bias_hh)]
    return [weight_ih, weight_hh, *biases]


def _fused_lstm(
    x: torch.Tensor, h0: Any, c0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any
) -> tuple[torch.Tensor, ...]:
    weights = _weights(weight_ih, weight_hh, bias_ih, bias_hh)
    state = (h0.unsqueeze(0).contiguous(), c0.unsqueeze(0).contiguous())
    training = torch.is_grad_enabled()
    y, h, c = torch.lstm(x, state, weights, len(weights) > 2, 1, 0.0, training, False, True)
    return y, h[0], c[0]


def _stepwise_lstm(
    x: torch.Tensor,
    h: torch.Tensor,
    c: torch.Tensor,
    weight_ih: Any,
    weight_hh: Any,
    bias_ih: Any,
    bias_hh: Any,
) -> tuple[torch.Tensor, ...]:
    states = []
    for entry in F.linear(x, weight_ih, bias_ih).unbind(1):
        i, f, g, o = (entry + F.linear(h, weight_hh, bias_hh)).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return _sequence(states, h), h, c


def _fused_gru(
    x: torch.Tensor, h0: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any
) -> tuple[torch.Tensor, ...]:
    weights = _weights(weight_ih, weight_hh, bias_ih, bias_hh)
    state = h0.unsqueeze(0).contiguous()
    training = torch.is_grad_enabled()
    y, h = torch.gru(x, state, weights, len(weights) > 2, 1, 0.0, training, False, True)
    return y, h[0]


def _stepwise_gru(
    x: torch.Tensor, h: torch.Tensor, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any
) -> tuple[torch.Tensor, ...]:
    states = []
    for entry in F.linear(x, weight_ih, bias_ih).unbind(1):
        r, z, n = entry.chunk(3, -1)
        hr, hz, hn = F.linear(h, weight_hh, bias_hh).chunk(3, -1)
        n = (n + (r + hr).sigmoid() * hn).tanh()
        h = n + (z + hz).sigmoid() * (h - n)
        states.append(h)
    return _sequence(states, h), h


def _sequence(states: list[Any], h: torch.Tensor) -> torch.Tensor:
    return torch.stack(states, 1) if states else h.unsqueeze(1).expand(-1, 0, -1)


def _stepwise_closed_form(
    x: torch.Tensor,
    h: torch.Tensor,
    weight_hh: Any,
    weight: torch.Tensor,
    bias: torch.Tensor,
    timespans: Any,
    gated: bool,
) -> torch.Tensor:
    size, states = h.shape[-1], []
    spans = [None] * x.shape[1] if timespans is None else timespans.unbind(1)
    for entry, span in zip(x.unbind(1), spans, strict=True):
        z = entry + F.linear(h, weight_hh)
        z = z if weight is None else F.linear(z.tanh(), weight, bias)
        f1, f2 = z[:, : 2 * size].tanh().chunk(2, -1)
        gate = z[:, 2 * size :] if span is None else z[:, 2 * size : -size] * span + z[:, -size:]
        h = f1 + gate.sigmoid() * (f2 - f1 if gated else f2)
        states.append(h)
    return _sequence(states, h)


def _stepwise_liquid(
    x: torch.Tensor,
    v: torch.Tensor,
    capacity: Any,
    slopes: Any,
    offsets: Any,
    weights: torch.Tensor,
) -> torch.Tensor:
    size, states = v.shape[-1], []
    for entry in x.unbind(1):
        sums = entry + F.linear(F.linear(v, slopes, offsets).sigmoid(), weights)
        v = (capacity * v + sums[:, :size]) / (capacity + sums[:, size:])
        states.append(v)
    return _sequence(states, v)
