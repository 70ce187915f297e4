"""Creation of arrays. Ranges are computed in float64 on the host and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from ember_ml._core.types import ShapeLike
from ember_ml.backend.axes import listed, sides, within
from ember_ml.backend.mlx import from_host, to_device


def zeros(shape: ShapeLike, *, dtype: mx.Dtype, device: str) -> mx.array:
    return mx.zeros(shape if type(shape) is tuple else listed(shape), dtype)


def ones(shape: ShapeLike, *, dtype: mx.Dtype, device: str) -> mx.array:
    return mx.ones(shape if type(shape) is tuple else listed(shape), dtype)


empty = zeros


def filled(x: mx.array, shape: ShapeLike) -> mx.array:
    """Return an array filled with a value; the gradient of MLX's `full` (0.32) is wrong."""
    return mx.contiguous(mx.broadcast_to(x, listed(shape)))


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: mx.Dtype, device: str
) -> mx.array:
    n_rows, n_cols = sides(n_rows, n_cols)
    return mx.eye(n_rows, n_cols, within(k, n_rows, n_cols), dtype)


def tri(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: mx.Dtype, device: str
) -> mx.array:
    n_rows, n_cols = sides(n_rows, n_cols)
    return mx.tri(n_rows, n_cols, within(k, n_rows, n_cols), dtype)


def tril(x: mx.array, k: int = 0) -> mx.array:
    return mx.tril(x, within(k, *x.shape[-2:]) if x.ndim > 1 else 0)


def triu(x: mx.array, k: int = 0) -> mx.array:
    return mx.triu(x, within(k, *x.shape[-2:]) if x.ndim > 1 else 0)


def arange(
    start: float, stop: float | None = None, step: float = 1, *, dtype: mx.Dtype, device: str
) -> mx.array:
    """Return a range; integers are exact."""
    if start is None or step is None:
        raise TypeError("start and step must be numbers")
    if step == 0:
        raise ValueError("step must not be 0")
    start, stop = (0, start) if stop is None else (start, stop)
    exact = all(isinstance(value, (int, np.integer)) for value in (start, stop, step))
    wide = np.uint64 if exact and dtype == mx.uint64 else None
    return from_host(np.arange(start, stop, step, wide), dtype, device, None)


def linspace(
    start: complex,
    stop: complex,
    num: int = 50,
    *,
    dtype: mx.Dtype,
    device: str,
    endpoint: bool = True,
) -> mx.array:
    """Return evenly spaced numbers, rounded down for integer dtypes."""
    values = np.linspace(start, stop, num, endpoint)
    return from_host(
        np.floor(values) if mx.issubdtype(dtype, mx.integer) else values, dtype, device, None
    )


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: mx.Dtype,
    device: str,
    endpoint: bool = True,
) -> mx.array:
    return from_host(np.logspace(start, stop, num, endpoint, base), dtype, device, None)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    dtype: mx.Dtype,
    device: str,
    endpoint: bool = True,
) -> mx.array:
    if not start * stop > 0:
        raise ValueError(f"start={start} and stop={stop} must be nonzero and have the same sign")
    return from_host(np.geomspace(start, stop, num, endpoint), dtype, device, None)


def _like(x: mx.array, value: complex, dtype: mx.Dtype | None, device: str | None) -> mx.array:
    values = mx.full(x.shape, mx.array(value, x.dtype if dtype is None else dtype))
    return values if device is None else to_device(values, device)


def zeros_like(
    x: mx.array, *, dtype: mx.Dtype | None = None, device: str | None = None
) -> mx.array:
    """Return zeros with the shape of x."""
    return _like(x, 0, dtype, device)


def ones_like(x: mx.array, *, dtype: mx.Dtype | None = None, device: str | None = None) -> mx.array:
    """Return ones with the shape of x."""
    return _like(x, 1, dtype, device)


empty_like = zeros_like


def coordinate_matrices(tensors: Sequence[mx.array], indexing: str = "xy") -> list[mx.array]:
    """Return the coordinates of a grid; copy empty ones, whose gradient may hang in MLX."""
    if any(x.ndim > 1 for x in tensors):
        raise ValueError("coordinates must be vectors or numbers")
    grids = mx.meshgrid(*tensors, indexing=indexing)
    return [grid if grid.size else mx.zeros(grid.shape, grid.dtype) for grid in grids]
