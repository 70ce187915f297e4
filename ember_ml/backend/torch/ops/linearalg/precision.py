"""What LAPACK takes: matrices, of full precision."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

_HALF = (torch.float16, torch.bfloat16)


def _wide(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _HALF else value


def _narrow(value: Any, dtype: Any) -> Any:
    return value.to(dtype) if value.dtype is torch.float32 else value


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of matrices, computing half precision in float32 and casting that back."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim < 2:
            raise ValueError("the shape is not that of matrices")
        if x.dtype not in _HALF:
            return function(x, *args, **kwargs)
        out = function(*[_wide(value) for value in (x, *args)], **kwargs)
        if isinstance(out, tuple):
            return tuple([_narrow(part, x.dtype) for part in out])
        return _narrow(out, x.dtype)

    return adapted


def square(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing matrices that are not square in the same words on every backend."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError("the shape is not that of square matrices")
        return function(x, *args, **kwargs)

    return adapted
