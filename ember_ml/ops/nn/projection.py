"""The maps a layer begins with: linear, embedding, one-hot."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite, host_checked, op
from ember_ml._core.indexing import check_range, host_array, host_shape
from ember_ml._core.rules import Rule
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike

__all__ = ["embedding", "linear", "one_hot"]

_RULE = Rule("floating", frozenset({"float", "complex"}), lift=True, contraction=True)


@composite(rule=_RULE)
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """X @ weight^T + bias, with a weight of (out features, in features)."""
    out = ops.matmul(x, ops.matrix_transpose(weight))
    return out if bias is None else out + bias


def _check_rows(name: str, given: dict[str, Any]) -> None:
    shape = host_shape(given["weight"])
    if shape:
        where = f"{name} of {shape[0]} rows"
        check_range(host_array(given["indices"]), shape[0], where, negative=False)


@host_checked(_check_rows)
@composite
def embedding(weight: TensorLike, indices: IndexLike) -> Tensor:
    """The rows of `weight` at `indices`: (..., features).

    An index must be from 0 to the number of rows - 1. NumPy and torch raise an IndexError if it is
    not; MLX looks at lists and NumPy arrays only, for its own may not be computed yet.
    """
    rows = ops.take(weight, ops.reshape(indices, (-1,)), axis=0)
    return ops.reshape(rows, (*indices.shape, *weight.shape[1:]))


@op(rule=rules.INTEGER)
def one_hot(
    x: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None
) -> Tensor:
    """1 at the place that x names along a new axis of num_classes, else 0; float32 unless told.

    An x outside 0 ... num_classes - 1 gives zeros only.
    """
