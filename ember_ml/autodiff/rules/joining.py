"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import by_operand, rule
from ember_ml.ops import joining
from ember_ml.ops.indexing import additem

by_operand(ops.stack, arrays=lambda g, out, arrays, axis=0: ops.unstack(g, axis))
by_operand(ops.unstack, x=lambda g, out, x, axis=0: ops.stack(g, axis))


@rule(joining.split_at)
def _(g: Any, out: Any, x: Any, indices: Sequence[int], axis: int = 0) -> Any:
    edges = [0, *indices, x.shape[axis]]
    if edges == sorted(edges):
        return ops.concat(g, axis)
    before = (slice(None),) * axis
    found = ops.zeros_like(x)  # where the parts overlap they are added
    for part, (start, stop) in zip(g, pairwise(edges), strict=True):
        found = additem(found, part, (*before, slice(start, stop)))
    return found


@rule(ops.concat)
def _(g: Any, out: Any, arrays: Sequence[Any], axis: int | None = 0) -> list[Any]:
    if axis is None:
        cuts = list(accumulate([x.size for x in arrays]))[:-1]
        parts = joining.split_at(g, cuts, 0)
        return [ops.reshape(part, x.shape) for part, x in zip(parts, arrays, strict=True)]
    cuts = list(accumulate([x.shape[axis] for x in arrays]))[:-1]
    return joining.split_at(g, cuts, axis % g.ndim)
