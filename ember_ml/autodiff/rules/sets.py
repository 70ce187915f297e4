"""Distinct elements: the gradient goes to the first of a kind."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.autodiff.rules import rule


def _put(g: Any, indices: Any, x: Any) -> Any:
    return ops.reshape(ops.segment_sum(g, indices, x.size), x.shape)


@rule(ops.unique_all)
def _(g: Any, out: Any, x: Any) -> Any:
    return _put(g[0], out[1], x)


@rule(ops.unique_values)
def _(g: Any, out: Any, x: Any) -> Any:
    return _put(g, ops.unique_all(x).indices, x)
