"""Linear maps, embeddings and one-hot encoding."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite, host_checked, op
from ember_ml._core.errors import ShapeError
from ember_ml._core.indexing import check_range, host_array, host_shape
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike

__all__ = ["embedding", "linear", "one_hot", "softplus_linear"]

_RULE = DTypeRule("floating", frozenset({"float", "complex"}), lift=True, contraction=True)
_REAL_RULE = DTypeRule("real floating", frozenset({"float"}), lift=True, contraction=True)


@composite(rule=_RULE)
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """Return x @ weight^T + bias.

    Args:
        x: (..., in features).
        weight: (out features, in features).
        bias: (out features,). Default: none.
    """
    out = ops.matmul(x, ops.matrix_transpose(weight))
    return out if bias is None else out + bias


@composite(rule=_REAL_RULE)
def softplus_linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """Return `softplus(linear(x, weight, bias))`, in one kernel where a backend has it.

    Args:
        x: (..., in features).
        weight: (out features, in features).
        bias: (out features,). Default: none.
    """
    if weight.ndim != 2 or x.shape[-1:] != weight.shape[1:]:
        raise ShapeError(
            "softplus_linear takes x (..., in features) and weight (out features, in features), "
            f"not shapes {x.shape} and {weight.shape}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"softplus_linear: bias must have the shape {weight.shape[:1]}, not {bias.shape}"
        )
    return ops.softplus(linear(x, weight, bias))


def _check_rows(name: str, arguments: dict[str, Any]) -> None:
    shape = host_shape(arguments["weight"])
    if shape:
        where = f"{name} of {shape[0]} rows"
        check_range(host_array(arguments["indices"]), shape[0], where, negative=False)


@host_checked(_check_rows)
@composite
def embedding(weight: TensorLike, indices: IndexLike) -> Tensor:
    """Return the rows of `weight` at `indices`.

    An index out of range raises an IndexError on NumPy and torch. MLX is lazy and checks lists and
    NumPy arrays only.

    Args:
        weight: Embedding matrix, (rows, features).
        indices: Integers in [0, rows).
    """
    rows = ops.take(weight, ops.reshape(indices, (-1,)), axis=0)
    return ops.reshape(rows, (*indices.shape, *weight.shape[1:]))


@op(rule=rules.INTEGER)
def one_hot(
    x: TensorLike, num_classes: int, axis: int = -1, dtype: DTypeLike | None = None
) -> Tensor:
    """Return a one-hot encoding along a new axis.

    Args:
        x: Classes; values outside [0, num_classes) return zeros only.
        num_classes: Length of the new axis.
        axis: Position of the new axis.
        dtype: Data type of the result. Default: float32.
    """
