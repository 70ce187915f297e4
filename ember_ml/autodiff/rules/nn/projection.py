"""VJP rules of linear maps and embeddings."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.autodiff.rules import vjps
from ember_ml.autodiff.rules.helpers import conj, flat_rows

vjps(
    ops.nn.linear,
    x=lambda g, out, x, weight, bias=None: ops.nn.linear(g, ops.matrix_transpose(conj(weight))),
    weight=lambda g, out, x, weight, bias=None: ops.matmul(
        ops.matrix_transpose(flat_rows(g)), conj(flat_rows(x))
    ),
    bias=lambda g, out, x, weight, bias=None: g,
)
vjps(
    ops.nn.embedding,
    weight=lambda g, out, weight, indices: ops.segment_sum(
        ops.reshape(g, (indices.size, *weight.shape[1:])),
        ops.reshape(indices, (-1,)),
        weight.shape[0],
    ),
)
