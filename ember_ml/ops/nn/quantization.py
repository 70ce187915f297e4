"""Weights stored as small integers, with a scale per group along the input axis.

A weight is `scale * q + shift`. Eight-bit integers q are stored as int8. Four-bit ones, 0 to 15,
are stored in pairs as uint8: the first of a pair in the low half of the byte.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.dispatch import IndexLike, composite
from ember_ml._core.errors import ShapeError
from ember_ml._core.packing import row_width
from ember_ml._core.rules import DTypeRule
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = ["dequantize", "quantized_linear"]

_CONTRACTION = DTypeRule("real floating", frozenset({"float"}), lift=True, contraction=True)


@composite(rule=rules.REAL_FLOAT)
def dequantize(
    packed: IndexLike,
    scale: TensorLike,
    shift: TensorLike | None = None,
    group_size: int = 64,
    features: int | None = None,
) -> Tensor:
    """Return the weights that integers and the scales of their groups stand for.

    Args:
        packed: Integers: int8 (..., features), or pairs of four bits as uint8
            (..., ceil(features / 2)).
        scale: Step of each group, (..., ceil(features / group_size)).
        shift: Weight of the integer 0 in each group, of the shape of `scale`. Default: 0.
        group_size: Number of consecutive weights with one scale; the last group may be smaller.
        features: Number of weights in a row. Default: as many as `packed` holds.

    Example:
        >>> packed = ops.astype(tensor.array([[1, -2, 3, 4]]), "int8")
        >>> dequantize(packed, [[0.5, 10.0]], group_size=2).tolist()
        [[0.5, -1.0, 30.0, 40.0]]
    """
    width = row_width(
        "dequantize",
        packed.dtype.name,
        packed.shape,
        scale.shape,
        None if shift is None else shift.shape,
        group_size,
        features,
    )
    q = ops.astype(_integers(packed, width), scale.dtype)
    groups = scale.shape[-1]
    if groups > 1 and groups * group_size != width:  # the last group is smaller
        scale = ops.repeat(scale, group_size, axis=-1)[..., :width]
        shift = None if shift is None else ops.repeat(shift, group_size, axis=-1)[..., :width]
        return q * scale if shift is None else q * scale + shift
    q = ops.reshape(q, (*scale.shape, width // max(1, groups)))
    weights = q * ops.expand_dims(scale, -1)
    if shift is not None:
        weights = weights + ops.expand_dims(shift, -1)
    return ops.reshape(weights, (*scale.shape[:-1], width))


@composite(rule=_CONTRACTION)
def quantized_linear(
    x: TensorLike,
    packed: IndexLike,
    scale: TensorLike,
    shift: TensorLike | None = None,
    bias: TensorLike | None = None,
    group_size: int = 64,
) -> Tensor:
    """Return x @ weight^T + bias for a weight that is stored as integers.

    Args:
        x: (..., in features).
        packed: Integers of the weight, as in `dequantize`: (out features, in features) as int8, or
            (out features, ceil(in features / 2)) as uint8.
        scale: Step of each group, (out features, ceil(in features / group_size)).
        shift: Weight of the integer 0 in each group, of the shape of `scale`. Default: 0.
        bias: (out features,). Default: none.
        group_size: Number of consecutive weights of a row with one scale.

    Example:
        >>> packed = ops.astype(tensor.array([[1, -2], [3, 4]]), "int8")
        >>> quantized_linear([1.0, 1.0], packed, [[0.5], [2.0]]).tolist()
        [-0.5, 14.0]
    """
    if x.ndim == 0:
        raise ShapeError("quantized_linear: x must have at least one axis, the features")
    return ops.linear(x, dequantize(packed, scale, shift, group_size, x.shape[-1]), bias)


def _integers(packed: Tensor, width: int) -> Tensor:
    """Return the integers of packed weights, (..., width)."""
    if packed.dtype.name == "int8":
        return packed
    halves = [ops.bitwise_and(packed, 15), ops.bitwise_right_shift(packed, 4)]
    pairs = ops.stack(halves, axis=-1)
    flat = ops.reshape(pairs, (*packed.shape[:-1], 2 * packed.shape[-1]))
    return flat if flat.shape[-1] == width else flat[..., :width]
