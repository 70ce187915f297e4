"""Cumulative operations."""

from __future__ import annotations

from typing import Any

import torch

from ember_ml.backend.torch import cast
from ember_ml.backend.torch.custom import custom_vjp
from ember_ml.backend.torch.nesting import is_tracked
from ember_ml.backend.torch.ops.recurrence import linear_recurrence


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
    x, axis = _along(x, axis)
    return _logcumsumexp(x, axis) if is_tracked(x) else torch.logcumsumexp(x, axis)


def _logcumsumexp(x: torch.Tensor, axis: int) -> torch.Tensor:
    """Use a gradient without the logarithm of the result's gradient, right at zeros and at -inf."""

    def pull(arrays: Any, cotangents: Any, again: bool) -> list[torch.Tensor]:
        (x,), (g,) = arrays, cotangents
        out = _logcumsumexp(x, axis) if again else torch.logcumsumexp(x, axis)
        later = torch.cat([out.narrow(axis, 1, out.shape[axis] - 1), out.narrow(axis, -1, 1)], axis)
        after, _ = linear_recurrence(_ratio(out, later), g, axis=axis, reverse=True)
        return [_ratio(x, out) * after]

    if x.shape[axis] == 0:
        return x
    return custom_vjp(lambda x: (torch.logcumsumexp(x, axis),), pull, (x,))[0]


def _ratio(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return exp(x - y), and 1 where both are the same infinity."""
    return torch.exp(torch.where(x == y, 0.0, x - y))
