"""Elementwise rounding and clipping."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml._core import rules
from ember_ml._core.convert import as_backend, convert_to_tensor
from ember_ml._core.dispatch import binary, composite, op, unary
from ember_ml._core.errors import ArgumentError, DTypeError
from ember_ml._core.tensor import Tensor, TensorLike

__all__ = [
    "ceil",
    "clamp",
    "clip",
    "floor",
    "fmax",
    "fmin",
    "maximum",
    "minimum",
    "round",
    "trunc",
]


@unary(rule=rules.REAL)
def ceil(x: TensorLike) -> Tensor:
    """Return x rounded up to the nearest integer.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL)
def floor(x: TensorLike) -> Tensor:
    """Return x rounded down to the nearest integer.

    Args:
        x: Input tensor.
    """


@unary(rule=rules.REAL)
def trunc(x: TensorLike) -> Tensor:
    """Return x rounded toward zero.

    Args:
        x: Input tensor.
    """


@op(rule=rules.NUMERIC)
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """Return x rounded to `decimals` decimal places; ties go to the even neighbor.

    Args:
        x: Input tensor.
        decimals: Number of decimal places; negative values round to tens, hundreds and so on.
    """


@binary(rule=rules.ORDERED)
def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the larger of x and y; NaN if either is NaN.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the smaller of x and y; NaN if either is NaN.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def fmax(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the larger of x and y; if one is NaN, the other.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


@binary(rule=rules.ORDERED)
def fmin(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the smaller of x and y; if one is NaN, the other.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
    """


def _bound(bound: Tensor | float | Sequence[float], x: Tensor, name: str) -> Tensor | float | None:
    """Return a bound ready to compare with x: of its kind, and of its dtype if that is floating."""
    if type(bound) is float and x.dtype.is_integer:
        if math.isinf(bound) and (bound > 0) == (name == "max"):
            return None
        if not math.isfinite(bound):
            raise ArgumentError(f"clip: {name}={bound} is not a valid bound for {x.dtype}")
        return math.ceil(bound) if name == "min" else math.floor(bound)
    if type(bound) in (bool, int, float):
        return bound
    tensor = as_backend(bound, x.backend)
    if not x.dtype.is_integer:
        return as_backend(tensor, x.backend, x.dtype)
    if not tensor.dtype.is_integer:
        raise DTypeError(
            f"clip: {name} has dtype {tensor.dtype}, but x has {x.dtype}; cast one of them"
        )
    return tensor


@composite(rule=rules.ORDERED)
def clip(
    x: TensorLike,
    min: Tensor | float | Sequence[float] | None = None,
    max: Tensor | float | Sequence[float] | None = None,
) -> Tensor:
    """Return x limited to the range [min, max], in the dtype of x.

    Args:
        x: Input tensor.
        min: Lower bound; broadcasts with x. Default: none.
        max: Upper bound; broadcasts with x. Default: none.
    """
    low = None if min is None else _bound(min, x, "min")
    high = None if max is None else _bound(max, x, "max")
    out = x if low is None else maximum(x, low)
    out = out if high is None else minimum(out, high)
    return out if out.dtype is x.dtype else convert_to_tensor(out, x.dtype)


clamp = clip
