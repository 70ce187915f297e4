"""Linear maps and embeddings."""

from __future__ import annotations

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand
from ember_ml.autodiff.rules._shared import conj
from ember_ml.autodiff.rules.contraction import rows

by_operand(
    ops.nn.linear,
    x=lambda g, out, x, weight, bias=None: ops.nn.linear(g, ops.matrix_transpose(conj(weight))),
    weight=lambda g, out, x, weight, bias=None: ops.matmul(
        ops.matrix_transpose(rows(g)), conj(rows(x))
    ),
    bias=lambda g, out, x, weight, bias=None: g,
)
by_operand(
    ops.nn.embedding,
    weight=lambda g, out, weight, indices: ops.segment_sum(
        ops.reshape(g, (indices.size, *weight.shape[1:])),
        ops.reshape(indices, (-1,)),
        weight.shape[0],
    ),
)
