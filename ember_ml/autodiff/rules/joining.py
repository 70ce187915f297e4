"""Tensors put together and taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule, rules
from ember_ml.ops import joining

rules(ops.stack, arrays=lambda g, out, arrays, axis=0: ops.unstack(g, axis))
rules(ops.unstack, x=lambda g, out, x, axis=0: ops.stack(g, axis))
rules(joining.split_at, x=lambda g, out, x, indices, axis=0: ops.concat(g, axis))


@rule(ops.concat)
def _(g: Any, out: Any, arrays: Sequence[Any], axis: int | None = 0) -> list[Any]:
    if axis is None:
        cuts = list(accumulate([x.size for x in arrays]))[:-1]
        parts = joining.split_at(g, cuts, 0)
        return [ops.reshape(part, x.shape) for part, x in zip(parts, arrays, strict=True)]
    cuts = list(accumulate([x.shape[axis] for x in arrays]))[:-1]
    return joining.split_at(g, cuts, axis % g.ndim)
