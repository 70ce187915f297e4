"""Indexing of NumPy arrays."""

from __future__ import annotations

import numpy as np

from ember_ml._core.errors import ShapeError

_BASIC = (int, slice, type(None), type(Ellipsis))


def getitem(data: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return the elements at an index."""
    return np.asarray(data)[key]


def _fit(value: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast the value to the shape it replaces, ignoring extra leading axes of length 1."""
    while np.ndim(value) > len(shape) and value.shape[0] == 1:
        value = value[0]
    try:
        return np.broadcast_to(value, shape)
    except ValueError:
        raise ShapeError(
            f"a value of shape {np.shape(value)} does not fit the shape {shape} of the index"
        ) from None


def setitem(data: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return a copy with new values at an index."""
    out = np.array(data)
    try:
        out[key] = value
    except (
        ValueError,
        TypeError,
    ):  # NumPy has special rules for masks and for empty and 0-d results
        out[key] = _fit(value, out[key].shape)
    return out


def additem(data: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return a copy with a value added at an index; repeated indices accumulate."""
    out = np.array(data)
    value = _fit(value, out[key].shape)
    if all(type(part) in _BASIC for part in (key if type(key) is tuple else (key,))):
        out[key] += value  # no index is repeated
    else:
        np.add.at(out, key, value)
    return out
