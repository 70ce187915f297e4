"""Along an axis, element after element: running sums, extremes, differences."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import composite, op
from ember_ml._core.dtype import PYTHON_TYPES, promote_scalar
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.indexing import host_shape, normalize_axis
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops.dtypes import floating

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "logcumsumexp",
    "trapezoid",
]


@op
def cumsum(x: TensorLike, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """The running sums along the axis, or of the flat tensor; dtypes as in `sum`."""


@op
def cumprod(x: TensorLike, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """The running products along the axis, or of the flat tensor; dtypes as in `sum`."""


@op(rule=rules.ORDERED)
def cummax(x: TensorLike, axis: int | None = None) -> Tensor:
    """The greatest element so far along the axis, or in the flat tensor; NaN from a NaN on."""


@op(rule=rules.ORDERED)
def cummin(x: TensorLike, axis: int | None = None) -> Tensor:
    """The least element so far along the axis, or in the flat tensor; NaN from a NaN on."""


@op(rule=rules.REAL_FLOAT)
def logcumsumexp(x: TensorLike, axis: int | None = None) -> Tensor:
    """log(cumsum(exp(x))) along the axis, or of the flat tensor, without overflow."""


def _only_axis(name: str, x: Tensor, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name} needs an axis unless x is a vector; the shape is {x.shape}")
    return 0 if axis is None else axis


@composite(rule=rules.NUMERIC)
def cumulative_sum(
    x: TensorLike,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """`cumsum` as the array API standard has it: the axis may be left out for vectors only.

    With `include_initial` a zero, the sum of nothing, stands before the sums.
    """
    axis = _only_axis("cumulative_sum", x, axis)
    out = cumsum(x, axis, dtype=dtype)
    if not include_initial:
        return out
    first = ops.zeros_like(ops.sum(out, axis, dtype=out.dtype, keepdims=True))
    return ops.concat([first, out], axis=axis)


@composite(rule=rules.NUMERIC)
def cumulative_prod(
    x: TensorLike,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """`cumprod` as the array API standard has it: the axis may be left out for vectors only.

    With `include_initial` a one, the product of nothing, stands before the products.
    """
    axis = _only_axis("cumulative_prod", x, axis)
    out = cumprod(x, axis, dtype=dtype)
    if not include_initial:
        return out
    first = ops.ones_like(ops.sum(out, axis, dtype=out.dtype, keepdims=True))
    return ops.concat([first, out], axis=axis)


def _spread(end: TensorLike, x: Tensor, shape: tuple[int, ...]) -> TensorLike:
    """What stands beside x: a number in every place, in the dtype it has beside x."""
    if host_shape(end):
        return end
    kind = type(end)
    dtype = promote_scalar(x.dtype, kind) if kind in PYTHON_TYPES else None
    return ops.broadcast_to(as_backend(end, x._backend, dtype), shape)


@composite(rule=rules.NUMERIC)
def diff(
    x: TensorLike,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """The differences between neighbours along the axis, taken n times.

    Args:
        x: the tensor.
        axis: the axis.
        n: how many times differences are taken.
        prepend: what to put before x along the axis first, of x's shape otherwise, or a number.
        append: what to put after x along the axis first, of x's shape otherwise, or a number.
    """
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative, not {n}")
    if x.ndim == 0:
        raise ShapeError("diff needs at least one axis; the tensor is 0-d")
    axis = normalize_axis("diff", axis, x.ndim)
    beside = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    ends = [None if end is None else _spread(end, x, beside) for end in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    out = ops.moveaxis(ops.concat(parts, axis=axis) if len(parts) > 1 else x, axis, -1)
    for _ in range(n):
        out = ops.subtract(out[..., 1:], out[..., :-1])
    return ops.moveaxis(out, -1, axis)


@composite(rule=rules.FLOAT)
def trapezoid(
    y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, axis: int = -1
) -> Tensor:
    """The integral of y along the axis by the trapezoidal rule.

    Args:
        y: the values.
        x: where they are: a vector along the axis, or a tensor that broadcasts with y.
        dx: their distance where no x is given.
        axis: the axis.
    """
    y = ops.moveaxis(floating(y), axis, -1)
    heights = ops.divide(ops.add(y[..., 1:], y[..., :-1]), 2)
    if x is None:
        return ops.sum(ops.multiply(heights, dx), -1)
    x = floating(x)
    widths = diff(x if x.ndim <= 1 else ops.moveaxis(x, axis, -1))
    return ops.sum(ops.multiply(heights, widths), -1)
