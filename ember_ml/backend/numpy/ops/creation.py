"""Creation of arrays. Ranges are computed in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy import empty as empty
from numpy import empty_like as empty_like
from numpy import ones as ones
from numpy import ones_like as ones_like
from numpy import zeros as zeros
from numpy import zeros_like as zeros_like

from ember_ml._core.types import ShapeLike
from ember_ml.backend.axes import sides, within
from ember_ml.backend.numpy import cast


def filled(x: np.ndarray, shape: ShapeLike) -> np.ndarray:
    return np.array(np.broadcast_to(x, shape))


def eye(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: np.dtype, device: str
) -> np.ndarray:
    n_rows, n_cols = sides(n_rows, n_cols)
    return np.eye(n_rows, n_cols, within(k, n_rows, n_cols), dtype)


def tri(
    n_rows: int, n_cols: int | None = None, *, k: int = 0, dtype: np.dtype, device: str
) -> np.ndarray:
    n_rows, n_cols = sides(n_rows, n_cols)
    return np.tri(n_rows, n_cols, within(k, n_rows, n_cols), dtype)


def arange(
    start: float, stop: float | None = None, step: float = 1, *, dtype: np.dtype, device: str
) -> np.ndarray:
    """Return a range; integers are exact."""
    if start is None or step is None:
        raise TypeError("start and step must be numbers")
    if step == 0:
        raise ValueError("step must not be 0")
    start, stop = (0, start) if stop is None else (start, stop)
    if dtype.kind in "iu" and all(
        isinstance(value, (int, np.integer)) for value in (start, stop, step)
    ):
        return np.arange(start, stop, step, dtype)
    return cast(np.arange(start, stop, step), dtype)


def linspace(
    start: complex,
    stop: complex,
    num: int = 50,
    *,
    dtype: np.dtype,
    device: str,
    endpoint: bool = True,
) -> np.ndarray:
    return np.linspace(start, stop, num, endpoint, dtype=dtype)


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    base: float = 10.0,
    dtype: np.dtype,
    device: str,
    endpoint: bool = True,
) -> np.ndarray:
    return cast(np.logspace(start, stop, num, endpoint, base), dtype)


def geomspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    dtype: np.dtype,
    device: str,
    endpoint: bool = True,
) -> np.ndarray:
    if not start * stop > 0:
        raise ValueError(f"start={start} and stop={stop} must be nonzero and have the same sign")
    return cast(np.geomspace(start, stop, num, endpoint), dtype)


def _check_matrix(x: np.ndarray) -> None:
    if x.ndim < 2:
        raise ValueError(f"matrices have at least 2 dimensions; the shape is {x.shape}")


def tril(x: np.ndarray, k: int = 0) -> np.ndarray:
    _check_matrix(x)
    return np.tril(x, within(k, *x.shape[-2:]))


def triu(x: np.ndarray, k: int = 0) -> np.ndarray:
    _check_matrix(x)
    return np.triu(x, within(k, *x.shape[-2:]))


def coordinate_matrices(tensors: Sequence[np.ndarray], indexing: str = "xy") -> list[np.ndarray]:
    """Return the coordinates of a grid."""
    if any(x.ndim > 1 for x in tensors):
        raise ValueError("coordinates must be vectors or numbers")
    return np.meshgrid(*tensors, indexing=indexing)
