"""Adapters for LAPACK, which needs matrices of full precision."""

from __future__ import annotations

import numpy as np

from ember_ml.backend import matrices
from ember_ml.backend.matrices import square as square

_HALF = np.dtype(np.float16)


def _wide(value: np.ndarray) -> np.ndarray:
    is_array = isinstance(value, (np.ndarray, np.generic))
    return value.astype(np.float32) if is_array and value.dtype == _HALF else value


def _narrow(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return value.astype(dtype) if value.dtype == np.float32 else value


widened = matrices.widened((_HALF,), _wide, _narrow)
