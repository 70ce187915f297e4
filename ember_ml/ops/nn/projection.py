"""The maps a layer begins with: linear, embedding, one-hot."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite, op
from ember_ml._core.rules import Rule
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike

__all__ = ["embedding", "linear", "one_hot"]

_RULE = Rule("floating", frozenset({"float", "complex"}), lift=True, contraction=True)


@composite(rule=_RULE)
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """X @ weight^T + bias, with a weight of (out features, in features)."""
    out = ops.matmul(x, ops.matrix_transpose(weight))
    return out if bias is None else out + bias


@composite
def embedding(weight: TensorLike, indices: IndexLike) -> Tensor:
    """The rows of `weight` at `indices`: (..., features).

    An index must be from 0 to the number of rows - 1. NumPy and torch raise an IndexError if it is
    not; MLX does not look, for its arrays may not be computed yet.
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
