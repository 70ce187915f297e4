"""Order."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule


@rule(ops.sort)
def _sort(
    g: Any, out: Any, x: Any, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Any:
    order = ops.argsort(x, axis, descending=descending)
    return ops.take_along_axis(g, ops.argsort(order, axis), axis)


@rule(ops.topk)
def _topk(
    g: Any,
    out: Any,
    x: Any,
    k: int,
    axis: int = -1,
    *,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002
) -> Any:
    return ops.put_along_axis(ops.zeros_like(x), out[1], g[0], axis)
