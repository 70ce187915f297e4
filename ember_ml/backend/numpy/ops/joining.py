"""Joining and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy import concatenate as concat  # noqa: F401
from numpy import stack as stack


def split_at(x: np.ndarray, indices: Sequence[int], axis: int = 0) -> list[np.ndarray]:
    before = (slice(None),) * (axis + x.ndim if axis < 0 else axis)
    edges = [0, *indices, x.shape[axis]]
    return [x[(*before, slice(start, stop))] for start, stop in pairwise(edges)]


def unstack(x: np.ndarray, axis: int = 0) -> list[np.ndarray]:
    moved = np.moveaxis(x, axis, 0)
    return [moved[at, ...] for at in range(len(moved))]
