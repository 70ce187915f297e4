"""Gates: activations whose form depends on a second tensor, or on the other half of an axis."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.indexing import normalize_axis
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops._precision import in_float32
from ember_ml.ops.nn._shapes import along
from ember_ml.ops.nn.activations import silu

__all__ = ["glu", "prelu", "swiglu"]


def _halves(op: str, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    if x.shape[normalize_axis(op, axis, x.ndim)] % 2:
        raise ShapeError(
            f"{op} halves axis {axis} of the shape {x.shape}, whose length must be even"
        )
    first, second = ops.split(x, 2, axis=axis)
    return first, second


@composite(rule=rules.REAL_FLOAT)
@in_float32
def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """First * sigmoid(second) of the two halves of an axis."""
    first, second = _halves("glu", x, axis)
    return first * ops.sigmoid(second)


@composite(rule=rules.REAL_FLOAT)
@in_float32
def swiglu(x: TensorLike, axis: int = -1) -> Tensor:
    """silu(first) * second of the two halves of an axis (Shazeer, 2020)."""
    first, second = _halves("swiglu", x, axis)
    return silu(first) * second


@composite(rule=rules.REAL_FLOAT)
@in_float32
def prelu(x: TensorLike, weight: TensorLike, axis: int = 1) -> Tensor:
    """X where it is positive, else weight * x.

    Args:
        x: the tensor.
        weight: a single slope, or one for each position along `axis`.
        axis: the axis of the slopes.
    """
    if weight.size == 1:
        weight = ops.reshape(weight, ())
    else:
        weight = along("prelu", "weight", weight, x, normalize_axis("prelu", axis, x.ndim))
    return ops.where(x > 0, x, x * weight)
