"""Along an axis, element after element."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.torch import cast


def _along(x: Any, axis: Any) -> tuple[Any, int]:
    """The tensor and its axis; the flat tensor if none is given."""
    if axis is None:
        return x.reshape(-1), 0
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return x, axis


def cumsum(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running sums."""
    return torch.cumsum(*_along(x if dtype is None else cast(x, dtype), axis), dtype=dtype)


def cumprod(x: Any, axis: Any = None, *, dtype: Any = None) -> Any:
    """Running products."""
    return torch.cumprod(*_along(x if dtype is None else cast(x, dtype), axis), dtype=dtype)


def cummax(x: Any, axis: Any = None) -> Any:
    """Running maxima."""
    return torch.cummax(*_along(x, axis))[0]


def cummin(x: Any, axis: Any = None) -> Any:
    """Running minima."""
    return torch.cummin(*_along(x, axis))[0]


def logcumsumexp(x: Any, axis: Any = None) -> Any:
    """Running log-sums of exponentials."""
    return torch.logcumsumexp(*_along(x, axis))
