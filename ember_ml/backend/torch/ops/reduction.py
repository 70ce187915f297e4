"""Reductions. torch treats no axes as all axes and a 0-d tensor as 1-d; both are handled here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import sum as _sum

from ember_ml._core.errors import ShapeError
from ember_ml._core.types import Axis
from ember_ml.backend.axes import count, listed, normalize
from ember_ml.backend.torch import cast

_HALVES = (torch.float16, torch.bfloat16)


def _folds(x: torch.Tensor, axis: Any) -> bool:
    """Return whether there is an axis to reduce."""
    if axis is None:
        return True
    if not isinstance(axis, int) and not listed(axis):
        return False
    if x.ndim == 0:
        raise IndexError("a 0-d tensor has no axes")
    return True


def _widened(dtype: torch.dtype) -> torch.Tensor:
    """Return the dtype of a sum: 64 bits for integers and bools."""
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _check_nonempty(name: str, x: torch.Tensor, axis: Any) -> None:
    """Raise for the extreme of an empty axis; torch's own error is unclear."""
    if x.numel() == 0 and count(x.shape, axis) == 0:
        raise ShapeError(
            f"{name}: no element to choose along axis={axis} of the shape {tuple(x.shape)}"
        )


def sum(
    x: torch.Tensor,
    axis: Axis | None = None,
    *,
    dtype: torch.dtype | None = None,
    keepdims: bool = False,
) -> torch.Tensor:
    if dtype is None and type(axis) is int and (axis > 0 or x.dim()):
        return _sum(x, axis, True) if keepdims else _sum(x, axis)
    if dtype is not None and x.dtype is not dtype:
        x = cast(x, dtype)
    if _folds(x, axis):
        return torch.sum(x, axis, keepdims, dtype=dtype)
    return x.to(dtype or _widened(x.dtype))


def prod(
    x: torch.Tensor,
    axis: Axis | None = None,
    *,
    dtype: torch.dtype | None = None,
    keepdims: bool = False,
) -> torch.Tensor:
    """Return the product, axis by axis; half precision in float32."""
    target = dtype or _widened(x.dtype)
    x = cast(x, torch.float32 if target in _HALVES else target)
    if axis is None and not keepdims:
        return torch.prod(x, dtype=x.dtype).to(target)
    for one in reversed(normalize(axis, x.ndim)):
        x = torch.prod(x, one, keepdims, dtype=x.dtype)
    return x.to(target)


def mean(x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False) -> torch.Tensor:
    return torch.mean(x, axis, keepdims) if _folds(x, axis) else x


def _moment(
    native: Callable[..., torch.Tensor],
    x: torch.Tensor,
    axis: Any,
    correction: float,
    keepdims: bool,
) -> torch.Tensor:
    """Return the variance or standard deviation; NaN if there are too few elements."""
    if count(x.shape, axis) <= correction or x.numel() == 0:
        return sum(x.abs(), axis, keepdims=keepdims) + torch.nan
    if not _folds(x, axis):
        return (x - x).abs()
    return native(x, axis, correction=correction, keepdim=keepdims)


def var(
    x: torch.Tensor, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> torch.Tensor:
    return _moment(torch.var, x, axis, correction, keepdims)


def std(
    x: torch.Tensor, axis: Axis | None = None, *, correction: float = 0.0, keepdims: bool = False
) -> torch.Tensor:
    """Return the standard deviation."""
    return _moment(torch.std, x, axis, correction, keepdims)


def max(x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False) -> torch.Tensor:
    _check_nonempty("max", x, axis)
    return torch.amax(x, axis, keepdims) if _folds(x, axis) else x


def min(x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False) -> torch.Tensor:
    _check_nonempty("min", x, axis)
    return torch.amin(x, axis, keepdims) if _folds(x, axis) else x


def any(x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False) -> torch.Tensor:
    x = x.bool()
    return torch.any(x, axis, keepdims) if _folds(x, axis) else x


def all(x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False) -> torch.Tensor:
    x = x.bool()
    return torch.all(x, axis, keepdims) if _folds(x, axis) else x


def count_nonzero(
    x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False
) -> torch.Tensor:
    return sum(x.bool(), axis, keepdims=keepdims)


def logsumexp(x: torch.Tensor, axis: Axis | None = None, *, keepdims: bool = False) -> torch.Tensor:
    if x.ndim == 0 or not _folds(x, axis):
        normalize(axis, x.ndim)
        return torch.logsumexp(x.unsqueeze(-1), -1)
    return torch.logsumexp(x, tuple(range(x.ndim)) if axis is None else axis, keepdims)


def argmax(x: torch.Tensor, axis: int | None = None, *, keepdims: bool = False) -> torch.Tensor:
    """Return the index of the greatest element."""
    _folds(x, axis)
    _check_nonempty("argmax", x, axis)
    return torch.argmax(x.byte() if x.dtype is torch.bool else x, axis, keepdims)


def argmin(x: torch.Tensor, axis: int | None = None, *, keepdims: bool = False) -> torch.Tensor:
    """Return the index of the least element."""
    _folds(x, axis)
    _check_nonempty("argmin", x, axis)
    return torch.argmin(x.byte() if x.dtype is torch.bool else x, axis, keepdims)
