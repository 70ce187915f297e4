"""Cumulative operations."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.torch import cast


def _along(x: torch.Tensor, axis: Any) -> tuple[Any, int]:
    """Return the tensor and its axis; the flat tensor if no axis is given."""
    if axis is None:
        return x.reshape(-1), 0
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return x, axis


def cumsum(
    x: torch.Tensor, axis: int | None = None, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    return torch.cumsum(*_along(x if dtype is None else cast(x, dtype), axis), dtype=dtype)


def cumprod(
    x: torch.Tensor, axis: int | None = None, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    return torch.cumprod(*_along(x if dtype is None else cast(x, dtype), axis), dtype=dtype)


def cummax(x: torch.Tensor, axis: int | None = None) -> torch.Tensor:
    return torch.cummax(*_along(x, axis))[0]


def cummin(x: torch.Tensor, axis: int | None = None) -> torch.Tensor:
    return torch.cummin(*_along(x, axis))[0]


def logcumsumexp(x: torch.Tensor, axis: int | None = None) -> torch.Tensor:
    """Return the cumulative log-sum-exp."""
    return torch.logcumsumexp(*_along(x, axis))
