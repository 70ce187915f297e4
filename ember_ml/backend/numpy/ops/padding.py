"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pad_constant(
    x: np.ndarray, widths: Sequence[tuple[int, int]], value: bool | int | float | complex = 0
) -> np.ndarray:
    if value is None:
        raise TypeError("value must be a number")
    shape = [length + sum(pair) for length, pair in zip(np.shape(x), widths, strict=True)]
    out = np.full(shape, value, x.dtype)
    inner = tuple(
        slice(before, before + length)
        for length, (before, _) in zip(np.shape(x), widths, strict=True)
    )
    out[inner] = x
    return out
