"""Determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.numpy.ops.linearalg.precision import square, widened

det = widened(square(np.linalg.det))


@widened
@square
def slogdet(x: np.ndarray) -> Any:
    """Return the sign and the log of the absolute value of the determinant."""
    return tuple(np.linalg.slogdet(x))
