"""Tensors put together and taken apart."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy import concatenate as concat  # noqa: F401
from numpy import stack as stack


def split_at(x: Any, indices: Any, axis: int = 0) -> Any:
    before = (slice(None),) * axis
    edges = [0, *indices, x.shape[axis]]
    return [x[(*before, slice(start, stop))] for start, stop in pairwise(edges)]


def unstack(x: Any, axis: int = 0) -> Any:
    moved = np.moveaxis(x, axis, 0)
    return [moved[at, ...] for at in range(len(moved))]
