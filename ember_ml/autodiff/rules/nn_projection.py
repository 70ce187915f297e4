"""Linear maps and embeddings."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rules
from ember_ml.autodiff.rules._shared import conj


def _rows(x: Any) -> Any:
    """All axes but the last as one."""
    return x if x.ndim == 2 else ops.reshape(x, (-1, x.shape[-1]))


rules(
    ops.nn.linear,
    x=lambda g, out, x, weight, bias=None: ops.nn.linear(g, ops.matrix_transpose(conj(weight))),
    weight=lambda g, out, x, weight, bias=None: ops.matmul(
        ops.matrix_transpose(_rows(g)), conj(_rows(x))
    ),
    bias=lambda g, out, x, weight, bias=None: g,
)
rules(
    ops.nn.embedding,
    weight=lambda g, out, weight, indices: ops.segment_sum(
        ops.reshape(g, (indices.size, *weight.shape[1:])),
        ops.reshape(indices, (-1,)),
        weight.shape[0],
    ),
)
