"""Bitwise operations."""

from __future__ import annotations

import numpy as np
from numpy import bitwise_and as bitwise_and
from numpy import bitwise_invert as bitwise_invert
from numpy import bitwise_left_shift as bitwise_left_shift
from numpy import bitwise_or as bitwise_or
from numpy import bitwise_right_shift as bitwise_right_shift
from numpy import bitwise_xor as bitwise_xor

from ember_ml.backend.interface import Variants


def count_ones(x: np.ndarray) -> np.ndarray:
    unsigned = np.asarray(x).view(f"u{x.dtype.itemsize}")
    return np.bitwise_count(unsigned).astype(np.int64)


_SCALARS = {
    "bitwise_and": bitwise_and,
    "bitwise_left_shift": bitwise_left_shift,
    "bitwise_or": bitwise_or,
    "bitwise_right_shift": bitwise_right_shift,
    "bitwise_xor": bitwise_xor,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
