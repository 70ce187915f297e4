"""Norms of vectors and matrices; half precision is computed in float32."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from ember_ml._core import rules
from ember_ml._core.dispatch import composite
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.backend.axes import listed
from ember_ml.ops._composite import narrowed, root, widened
from ember_ml.ops.comparison import equal, not_equal
from ember_ml.ops.complex_numbers import conj, real
from ember_ml.ops.dtypes import astype
from ember_ml.ops.elementwise import abs, divide, multiply, pow
from ember_ml.ops.indexing import where
from ember_ml.ops.linearalg.decompositions import svdvals
from ember_ml.ops.linearalg.matrix_functions import identity_like, slogdet
from ember_ml.ops.linearalg.solving import inv
from ember_ml.ops.manipulation import expand_dims, moveaxis
from ember_ml.ops.reduction import max, min, sum

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]

MatrixOrd: TypeAlias = "float | Literal['fro', 'nuc'] | None"


@composite(rule=rules.FLOAT)
def vector_norm(
    x: TensorLike,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: float | str = 2,
) -> Tensor:
    """Return the vector norm (sum |x|^ord)^(1 / ord) over axes.

    Args:
        x: Input tensor.
        axis: Axis or axes to reduce. Default: all axes.
        keepdims: Whether to keep the reduced axes with length 1.
        ord: Order; inf and -inf return the largest and smallest |x|, 0 the number of nonzeros.
    """
    if isinstance(ord, str):
        raise ArgumentTypeError(f"vector_norm: ord must be a number; got {ord!r}")
    wide = widened(x)
    if ord == 2:
        squares = real(multiply(conj(wide), wide)) if x.dtype.is_complex else multiply(wide, wide)
        return narrowed(root(sum(squares, axis=axis, keepdims=keepdims)), x)
    size = abs(wide)
    if math.isinf(ord):
        out = (max if ord > 0 else min)(size, axis=axis, keepdims=keepdims)
    elif ord == 0:
        out = sum(astype(not_equal(size, 0.0), size.dtype), axis=axis, keepdims=keepdims)
    elif ord == 1:
        out = sum(size, axis=axis, keepdims=keepdims)
    else:
        out = pow(sum(pow(size, float(ord)), axis=axis, keepdims=keepdims), 1.0 / ord)
    return narrowed(out, x)


@composite(rule=rules.FLOAT)
def matrix_norm(x: TensorLike, keepdims: bool = False, ord: MatrixOrd = "fro") -> Tensor:
    """Return the norm of each matrix in the last two axes.

    Args:
        x: Matrices, (..., m, n).
        keepdims: Whether to keep the last two axes with length 1.
        ord: "fro": Frobenius norm. "nuc": sum of the singular values. 2, -2: largest, smallest
            singular value. 1, -1: largest, smallest absolute column sum. inf, -inf: the same for
            rows.
    """
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: x has shape {x.shape}; expected at least two axes")
    if ord is None or ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ArgumentError(
            f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf; got {ord!r}"
        )
    wide = widened(x)
    if ord in ("nuc", 2, -2):
        out = {"nuc": sum, 2: max, -2: min}[ord](svdvals(wide), axis=-1)
    else:
        sums = sum(abs(wide), axis=-2 if ord in (1, -1) else -1)
        out = (max if ord in (1, math.inf) else min)(sums, axis=-1)
    return narrowed(expand_dims(expand_dims(out, -1), -1) if keepdims else out, x)


@composite(rule=rules.FLOAT)
def norm(
    x: TensorLike,
    ord: MatrixOrd = None,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return the norm of vectors along one axis, or of matrices in two.

    Without `axis`, x is one vector or matrix; without `ord` either, x is flattened.

    Args:
        x: Input tensor.
        ord: Order, as in `vector_norm` and `matrix_norm`. Default: the 2-norm or Frobenius norm.
        axis: Axis of the vectors, or both axes of the matrices.
        keepdims: Whether to keep the reduced axes with length 1.
    """
    if axis is None and (ord is None or x.ndim == 1):
        return vector_norm(x, keepdims=keepdims, ord=2 if ord is None else ord)
    if axis is None and x.ndim != 2:
        raise ShapeError(
            f"norm: x has shape {x.shape}; with ord and without axis, expected one or two axes"
        )
    axes = (-2, -1) if axis is None else listed(axis)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ArgumentError(f"norm: axis must be one axis or two; got {axis!r}")
    out = matrix_norm(moveaxis(x, axes, (-2, -1)), keepdims=keepdims, ord=ord)
    return moveaxis(out, (-2, -1), axes) if keepdims else out


@composite(rule=rules.FLOAT)
def cond(x: TensorLike, p: MatrixOrd = None) -> Tensor:
    """Return the condition number |x| |x^-1|; inf for a singular matrix.

    Args:
        x: Square matrices, (..., n, n); for the 2-norm also rectangular.
        p: Norm, as in `matrix_norm`. Default: 2.
    """
    wide = widened(x)
    if p in (None, 2, -2):
        values = svdvals(wide)
        largest, smallest = max(values, axis=-1), min(values, axis=-1)
        out = divide(smallest, largest) if p == -2 else divide(largest, smallest)
        return narrowed(out, x)
    is_singular = equal(abs(slogdet(wide).sign), 0.0)
    regular = where(expand_dims(expand_dims(is_singular, -1), -1), identity_like(wide), wide)
    out = multiply(matrix_norm(wide, ord=p), matrix_norm(inv(regular), ord=p))
    return narrowed(where(is_singular, math.inf, out), x)
