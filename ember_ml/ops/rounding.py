"""Rounding to integers and keeping within bounds, element by element."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

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
    """The smallest integer that is not less than x."""


@unary(rule=rules.REAL)
def floor(x: TensorLike) -> Tensor:
    """The greatest integer that is not greater than x."""


@unary(rule=rules.REAL)
def trunc(x: TensorLike) -> Tensor:
    """The integer part of x: rounds towards zero."""


@op(rule=rules.NUMERIC)
def round(x: TensorLike, decimals: int = 0) -> Tensor:
    """The nearest number of `decimals` decimal places, the even one of two equally near."""


@binary(rule=rules.ORDERED)
def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The greater of x and y; NaN if one is NaN."""


@binary(rule=rules.ORDERED)
def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The lesser of x and y; NaN if one is NaN."""


@binary(rule=rules.ORDERED)
def fmax(x: TensorLike, y: TensorLike) -> Tensor:
    """The greater of x and y; the other one if one is NaN."""


@binary(rule=rules.ORDERED)
def fmin(x: TensorLike, y: TensorLike) -> Tensor:
    """The lesser of x and y; the other one if one is NaN."""


def _bound(bound: Tensor | float | Sequence[Any], x: Tensor, name: str) -> Any:
    """A bound fit to meet x: of its kind, and of its dtype unless that is an integer's."""
    if type(bound) is float and x.dtype.is_integer:
        if math.isinf(bound) and (bound > 0) == (name == "max"):
            return None
        if not math.isfinite(bound):
            raise ArgumentError(f"clip: {name}={bound} is no bound for {x.dtype}")
        return math.ceil(bound) if name == "min" else math.floor(bound)
    if type(bound) in (bool, int, float):
        return bound
    tensor = as_backend(bound, x.backend)
    if not x.dtype.is_integer:
        return as_backend(tensor, x.backend, x.dtype)
    if not tensor.dtype.is_integer:
        raise DTypeError(
            f"clip keeps x's dtype {x.dtype}, but {name} is {tensor.dtype}: cast one of them"
        )
    return tensor


@composite(rule=rules.ORDERED)
def clip(
    x: TensorLike,
    min: Tensor | float | Sequence[Any] | None = None,
    max: Tensor | float | Sequence[Any] | None = None,
) -> Tensor:
    """x, but not less than `min` and not more than `max`; the dtype stays that of x."""
    low = None if min is None else _bound(min, x, "min")
    high = None if max is None else _bound(max, x, "max")
    out = x if low is None else maximum(x, low)
    out = out if high is None else minimum(out, high)
    return out if out.dtype is x.dtype else convert_to_tensor(out, x.dtype)


clamp = clip
