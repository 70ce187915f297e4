"""Running sums and extremes, differences and integrals along an axis."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import as_backend
from ember_ml._core.dispatch import composite, op
from ember_ml._core.dtype import PYTHON_TYPES, promote_scalar
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.indexing import host_shape
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops._arguments import normalize_axis
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
    """Return the running sums along an axis.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the flattened tensor.
        dtype: Data type to compute in. Default: as in `sum`.
    """


@op
def cumprod(x: TensorLike, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Tensor:
    """Return the running products along an axis.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the flattened tensor.
        dtype: Data type to compute in. Default: as in `sum`.
    """


@op(rule=rules.ORDERED)
def cummax(x: TensorLike, axis: int | None = None) -> Tensor:
    """Return the running maximum along an axis; NaN from the first NaN on.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the flattened tensor.
    """


@op(rule=rules.ORDERED)
def cummin(x: TensorLike, axis: int | None = None) -> Tensor:
    """Return the running minimum along an axis; NaN from the first NaN on.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the flattened tensor.
    """


@op(rule=rules.REAL_FLOAT)
def logcumsumexp(x: TensorLike, axis: int | None = None) -> Tensor:
    """Return log(cumsum(exp(x))) along an axis without overflow.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the flattened tensor.
    """


def _only_axis(name: str, x: Tensor, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name}: axis is required unless x is a vector; x has shape {x.shape}")
    return 0 if axis is None else axis


@composite(rule=rules.NUMERIC)
def cumulative_sum(
    x: TensorLike,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Return the running sums along an axis: the array API standard's `cumsum`.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the only axis of a vector.
        dtype: Data type to compute in. Default: as in `sum`.
        include_initial: Whether to start with 0, the empty sum.
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
    """Return the running products along an axis: the array API standard's `cumprod`.

    Args:
        x: Input tensor.
        axis: Axis to run along. Default: the only axis of a vector.
        dtype: Data type to compute in. Default: as in `sum`.
        include_initial: Whether to start with 1, the empty product.
    """
    axis = _only_axis("cumulative_prod", x, axis)
    out = cumprod(x, axis, dtype=dtype)
    if not include_initial:
        return out
    first = ops.ones_like(ops.sum(out, axis, dtype=out.dtype, keepdims=True))
    return ops.concat([first, out], axis=axis)


def _spread(end: TensorLike, x: Tensor, shape: tuple[int, ...]) -> TensorLike:
    """Return what is joined to x: a scalar is broadcast, in the dtype it promotes to."""
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
    """Return the differences between neighbors along an axis, taken n times.

    Args:
        x: Input tensor.
        axis: Axis to take differences along.
        n: Number of times to take differences.
        prepend: Scalar, or tensor of x's shape along the other axes, to put before x.
        append: Scalar, or tensor of x's shape along the other axes, to put after x.
    """
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative; got {n}")
    if x.ndim == 0:
        raise ShapeError("diff: x must have at least one axis; got a 0-d tensor")
    axis = normalize_axis("diff", axis, x.ndim)
    edge_shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    ends = [None if end is None else _spread(end, x, edge_shape) for end in (prepend, append)]
    parts = [part for part in (ends[0], x, ends[1]) if part is not None]
    out = ops.moveaxis(ops.concat(parts, axis=axis) if len(parts) > 1 else x, axis, -1)
    for _ in range(n):
        out = ops.subtract(out[..., 1:], out[..., :-1])
    return ops.moveaxis(out, -1, axis)


@composite(rule=rules.FLOAT)
def trapezoid(
    y: TensorLike, x: TensorLike | None = None, *, dx: float = 1.0, axis: int = -1
) -> Tensor:
    """Return the integral of y along an axis by the trapezoidal rule.

    Args:
        y: Values of the integrand.
        x: Sample points: a vector along the axis, or a tensor that broadcasts with y.
        dx: Distance between sample points if x is missing.
        axis: Axis to integrate along.
    """
    y = ops.moveaxis(floating(y), axis, -1)
    heights = ops.divide(ops.add(y[..., 1:], y[..., :-1]), 2)
    if x is None:
        return ops.sum(ops.multiply(heights, dx), -1)
    x = floating(x)
    widths = diff(x if x.ndim <= 1 else ops.moveaxis(x, axis, -1))
    return ops.sum(ops.multiply(heights, widths), -1)
