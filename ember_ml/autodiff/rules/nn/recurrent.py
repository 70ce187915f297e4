"""VJP rules of recurrent cells: their adjoints, backward in time."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule
from ember_ml.ops.nn import gated_cells, liquid_cells

Tensors = tuple[Tensor, ...]
Four = tuple[Tensor, Tensor, Tensor, Tensor]
Six = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


@vjp_rule(gated_cells._lstm_steps, native_only=True)
def _(
    g: Six,
    out: Six,
    x: Tensor,
    h0: Tensor,
    c0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias: Tensor | None = None,
) -> Tensors:
    operands = (x, h0, c0, weight_ih, weight_hh)
    return gated_cells._lstm_adjoint(*operands, *out[3:], *g[:3], bias)


@vjp_rule(gated_cells._gru_steps, native_only=True)
def _(
    g: Four,
    out: Four,
    x: Tensor,
    h0: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> Tensors:
    operands = (x, h0, weight_ih, weight_hh)
    return gated_cells._gru_adjoint(*operands, *out[2:], *g[:2], bias_ih, bias_hh)


@vjp_rule(liquid_cells._closed_form_steps, native_only=True)
def _(
    g: Four,
    out: Four,
    x: Tensor,
    h0: Tensor,
    weight_hh: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    timespans: Tensor | None = None,
    gated: bool = True,
) -> Tensors:
    operands = (x, h0, weight_hh)
    return liquid_cells._closed_form_adjoint(
        *operands, *out[1:], g[0], weight, bias, timespans, gated
    )


@vjp_rule(liquid_cells._liquid_steps, native_only=True)
def _(
    g: Four,
    out: Four,
    x: Tensor,
    v0: Tensor,
    capacity: Tensor,
    slopes: Tensor,
    offsets: Tensor,
    weights: Tensor,
) -> Tensors:
    operands = (x, v0, capacity, slopes, offsets, weights)
    return liquid_cells._liquid_adjoint(*operands, *out[1:], g[0])


@vjp_rule(ops.synapses, native_only=True)
def _(
    g: Tensor,
    out: Tensor,
    v: Tensor,
    slopes: Tensor,
    offsets: Tensor,
    weights: Tensor,
    sources: Tensor,
    destinations: Tensor,
    size: int,
) -> tuple[Tensor | None, ...]:
    operands = (v, slopes, offsets, weights, g)
    return *liquid_cells._synapses_adjoint(*operands, sources, destinations, size), None, None
