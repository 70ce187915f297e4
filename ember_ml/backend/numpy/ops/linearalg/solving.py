"""Linear systems."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.numpy.ops.linearalg.precision import square, widened

inv = widened(square(np.linalg.inv))
solve = widened(square(np.linalg.solve))


@widened
@square
def solve_triangular(
    x: np.ndarray, y: np.ndarray, upper: bool = False, unit_diagonal: bool = False
) -> np.ndarray:
    """Solve a triangular system by a general solver; NumPy has no triangular one."""
    triangle = np.triu(x) if upper else np.tril(x)
    if unit_diagonal:
        triangle = np.where(np.eye(x.shape[-1], dtype=bool), np.ones((), x.dtype), triangle)
    return np.linalg.solve(triangle, y)


def pinv(x: np.ndarray, rtol: np.ndarray | None = None) -> np.ndarray:
    tolerance = max(x.shape[-2:]) * np.finfo(x.dtype).eps if rtol is None else rtol
    return widened(np.linalg.pinv)(x, rtol=tolerance)
