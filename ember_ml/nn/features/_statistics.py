"""Statistics of the columns of a matrix that is read in chunks of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.dtype import float32, int64
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor

CHUNK = 1 << 16
"""Number of elements that are reduced at once: they stay in the cache, and float32 sums exact."""

BLOCK = 1024
"""Number of rows of the blocks of `column_sums`."""


class Moments(NamedTuple):
    """Number of rows, mean, and sum of squared deviations (or of their outer products)."""

    rows: Tensor
    mean: Tensor
    m2: Tensor


def as_rows(owner: object, x: Tensor) -> Tensor:
    """Return (..., rows, features) as a floating-point matrix, at least in float32.

    Args:
        owner: The extractor that an error names.
        x: Batch.
    """
    name = type(owner).__name__
    if x.ndim < 2:
        raise ShapeError(
            f"{name}: a batch must have shape (rows, features) or more axes, got {x.shape}"
        )
    if x.dtype.is_complex:
        raise ArgumentTypeError(f"{name}: a batch must be real, got dtype {x.dtype}")
    if not x.shape[-1]:
        raise ShapeError(f"{name}: a batch must have at least one feature, got shape {x.shape}")
    x = as_float(x)
    return x if x.ndim == 2 else ops.reshape(x, (-1, x.shape[-1]))


def as_float(x: Tensor) -> Tensor:
    """Return x in floating point, with at least 32 bits."""
    return x if x.dtype.kind == "float" and x.dtype.bits > 16 else ops.astype(x, float32)


def chunks(x: Tensor, least: int = 1) -> Iterator[Tensor]:
    """Yield the rows of a matrix in chunks.

    Args:
        x: Matrix with at least one row.
        least: Least number of rows of a chunk.
    """
    size = max(CHUNK // x.shape[1], least)
    if x.shape[0] <= size:
        yield x
        return
    for start in range(0, x.shape[0], size):
        yield x[start : start + size]


def centered(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the deviations from the approximate mean, their sum, and the approximate mean."""
    shift = ops.mean(x, axis=0)
    deviations = x - shift
    return deviations, ops.sum(deviations, axis=0), shift


def column_sums(x: Tensor) -> Tensor:
    """Return the sums of the columns, added in blocks of rows: float32 sums stay accurate."""
    rows, features = x.shape
    blocks = rows // BLOCK
    if not blocks:
        return ops.sum(x, axis=0)
    ones = ops.ones_like(x[:BLOCK, 0])
    sums = ops.matmul(ones, ops.reshape(x[: blocks * BLOCK], (blocks, BLOCK, features)))
    return ops.sum(sums, axis=0) + ops.sum(x[blocks * BLOCK :], axis=0)


def merge(a: Moments, b: Moments) -> Moments:
    """Return the moments of the rows of both (Chan, Golub and LeVeque, 1979).

    Counts are scalars or one for each column. `m2` is a vector, or a matrix of outer products.
    """
    count = a.rows + b.rows
    total = ops.maximum(count, 1)
    share = ops.astype(b.rows, a.mean.dtype) / total
    delta = b.mean - a.mean
    weight = share * ops.astype(a.rows, a.mean.dtype)
    squared = delta * delta * weight if a.m2.ndim == 1 else ops.outer(delta, delta * weight)
    return Moments(count, a.mean + delta * share, a.m2 + b.m2 + squared)


def column_moments(x: Tensor) -> Moments:
    """Return the moments of each column of a matrix without missing values.

    The deviations are those from the mean of the first rows, in chunks that stay in the cache.
    """
    rows = x.shape[0]
    parts = list(chunks(x))
    shift = ops.mean(parts[0], axis=0)
    total = squares = ops.zeros_like(shift)
    for part in parts:
        deviations = part - shift
        total = total + ops.sum(deviations, axis=0)
        squares = squares + ops.einsum("ij,ij->j", deviations, deviations)
    m2 = ops.maximum(squares - total * total / rows, 0.0)
    return Moments(ops.full_like(shift, rows, dtype=int64), shift + total / rows, m2)


def present_moments(x: Tensor) -> Moments:
    """Return the moments of the values of each column that are not NaN."""
    missing = ops.isnan(x)
    count = ops.sum(ops.astype(~missing, int64), axis=0)
    rows = ops.astype(ops.maximum(count, 1), x.dtype)
    shift = ops.sum(ops.where(missing, 0.0, x), axis=0) / rows
    deviations = ops.where(missing, 0.0, x - shift)
    total = ops.sum(deviations, axis=0)
    m2 = ops.sum(deviations * deviations, axis=0) - total * total / rows
    return Moments(count, shift + total / rows, ops.maximum(m2, 0.0))


def greatest(x: Tensor) -> float:
    """Return the greatest magnitude, read from the device; NaN if x contains NaN."""
    if not x.size:
        return 0.0
    low, high = float(ops.min(x)), float(ops.max(x))
    return max(abs(low), abs(high)) if low <= high else float("nan")


def is_finite(x: Tensor) -> bool:
    """Return whether all values are finite, read from the device."""
    return math.isfinite(greatest(x))


def is_bounded(x: Tensor) -> bool:
    """Return whether all values are finite, and the sums of their squares too."""
    limit = math.sqrt(ops.finfo(x.dtype).max / max(4 * x.shape[0], 1))
    return greatest(x) < limit


def refuse_nonfinite(owner: object, x: Tensor, *, nan: bool = True, hint: bool = True) -> None:
    """Raise an ArgumentError that names the first column with a NaN or infinite value, if any.

    Args:
        owner: The extractor that the error names.
        x: Input; the columns are along the last axis.
        nan: Whether NaN is an error.
        hint: Whether the extractor has the argument `nan`.
    """
    kinds = [("infinite", ops.isinf(x))] + ([("NaN", ops.isnan(x))] if nan else [])
    for kind, bad in reversed(kinds):
        counts = ops.sum(ops.astype(ops.reshape(bad, (-1, x.shape[-1])), int64), axis=0).tolist()
        column = next((at for at, count in enumerate(counts) if count), None)
        if column is not None:
            advice = "; remove them, or pass nan='ignore'" if kind == "NaN" and hint else ""
            raise ArgumentError(
                f"{type(owner).__name__}: column {column} has {counts[column]} {kind} value(s) "
                f"in an input of shape {x.shape}{advice}"
            )
