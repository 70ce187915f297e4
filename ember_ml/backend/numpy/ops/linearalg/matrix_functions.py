"""Determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ember_ml.backend.numpy.ops.linearalg.precision import widened

det = widened(np.linalg.det)


@widened
def slogdet(x: Any) -> Any:
    """The sign and the logarithm of the size of the determinant."""
    return tuple(np.linalg.slogdet(x))
