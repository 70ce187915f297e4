"""Unique elements."""

from __future__ import annotations

from typing import Any

import numpy as np


def unique_all(x: np.ndarray) -> Any:
    values, indices, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, indices, inverse.reshape(np.shape(x)), counts


def unique_values(x: np.ndarray) -> np.ndarray:
    return np.unique(x, equal_nan=False)


def unique_rows(x: np.ndarray) -> Any:
    return np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=0)[1:]
