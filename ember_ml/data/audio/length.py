"""Signals of a fixed length."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml.data.conversion import to_host
from ember_ml.data.errors import check_integer

Position: TypeAlias = Literal["start", "center", "end"]
_SHARES = {"start": 0.0, "center": 0.5, "end": 1.0}


def fit_length(samples: object, length: int, position: Position = "start") -> np.ndarray:
    """Return a signal cropped, or padded with zeros, to a number of samples.

    Args:
        samples: Array or tensor of shape (..., samples).
        length: Number of samples of the result.
        position: Part of a longer signal that is returned, and place of a shorter one in the
            result: "start", "center" or "end". Default: "start", which pads at the end.

    Example:
        >>> from ember_ml.data import audio
        >>> audio.fit_length([1.0, 2.0, 3.0], 5, "center").tolist()
        [0.0, 1.0, 2.0, 3.0, 0.0]
        >>> audio.fit_length([1.0, 2.0, 3.0], 2).tolist()
        [1.0, 2.0]
    """
    length = check_integer("audio.fit_length", "length", length, 1)
    check_position("audio.fit_length", position)
    array = to_host(samples)
    if array.ndim == 0:
        raise ArgumentError("audio.fit_length: samples must have an axis, not be a number")
    return fitted(array, length, int(abs(array.shape[-1] - length) * _SHARES[position]))


def check_position(where: str, position: Position) -> Position:
    """Return a position; raise an error if it is unknown.

    Args:
        where: Name of the class or function in the error.
        position: Position to check.
    """
    if position not in _SHARES:
        raise ArgumentError(
            f"{where}: position must be 'start', 'center' or 'end', not {position!r}"
        )
    return position


def fitted(samples: np.ndarray, length: int, offset: int) -> np.ndarray:
    """Return a signal cropped from `offset`, or padded with `offset` zeros before it.

    Args:
        samples: (..., samples).
        length: Number of samples of the result.
        offset: Start of the crop, or number of zeros before a signal that is too short.
    """
    missing = length - samples.shape[-1]
    if missing <= 0:
        return samples[..., offset : offset + length]
    sides = [(0, 0)] * (samples.ndim - 1) + [(offset, missing - offset)]
    return np.pad(samples, sides)
