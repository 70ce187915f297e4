"""VJP rules of linear maps and embeddings."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.autodiff.rules.helpers import conj, flat_rows
from ember_ml.ops.nn import adjoints

vjps(
    ops.nn.linear,
    x=lambda g, out, x, weight, bias=None: ops.nn.linear(g, ops.matrix_transpose(conj(weight))),
    weight=lambda g, out, x, weight, bias=None: ops.matmul(
        ops.matrix_transpose(flat_rows(g)), conj(flat_rows(x))
    ),
    bias=lambda g, out, x, weight, bias=None: g,
)


@vjp_rule(ops.nn.softplus_linear)
def _(
    g: Tensor, out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    of_x, of_weight, of_bias = adjoints.softplus_linear_adjoint(g, out, x, weight)
    return of_x, of_weight, None if bias is None else of_bias


vjps(
    ops.nn.embedding,
    weight=lambda g, out, weight, indices: ops.segment_sum(
        ops.reshape(g, (indices.size, *weight.shape[1:])),
        ops.reshape(indices, (-1,)),
        weight.shape[0],
    ),
)
