"""Tensors put together and taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import concatenate as concat  # noqa: F401
from numpy import stack as stack


def unstack(x: Any, axis: int = 0) -> Any:
    slices = np.moveaxis(x, axis, 0)
    return [slices[at, ...] for at in range(len(slices))]
