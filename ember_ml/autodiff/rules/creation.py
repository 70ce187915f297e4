"""Tensors made of other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.ops import creation

by_operand(creation.filled, x=lambda g, out, x, shape: g)
by_operand(ops.tril, x=lambda g, out, x, k=0: ops.tril(g, k))
by_operand(ops.triu, x=lambda g, out, x, k=0: ops.triu(g, k))


@rule(creation.coordinate_matrices)
def _(g: Any, out: Any, tensors: Sequence[Any], indexing: str = "xy") -> list[Any]:
    axes = list(range(len(tensors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    return [
        ops.reshape(ops.sum(part, axis=tuple(sorted({*axes} - {axis}))), x.shape)
        for part, axis, x in zip(g, axes, tensors, strict=True)
    ]
