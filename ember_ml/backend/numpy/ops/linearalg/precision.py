"""What LAPACK takes: matrices, of full precision."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def _cast(value: Any, source: type, target: type) -> Any:
    is_array = isinstance(value, (np.ndarray, np.generic))
    return value.astype(target) if is_array and value.dtype == source else value


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of matrices, computing float16 in float32; what is float32 is cast back."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim < 2:
            raise ValueError("the shape is not that of matrices")
        if x.dtype != np.float16:
            return function(x, *args, **kwargs)
        out = function(*[_cast(value, np.float16, np.float32) for value in (x, *args)], **kwargs)
        with np.errstate(over="ignore"):
            if isinstance(out, tuple):
                return tuple([_cast(part, np.float32, np.float16) for part in out])
            return _cast(out, np.float32, np.float16)

    return adapted


def square(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing matrices that are not square in the same words on every backend."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError("the shape is not that of square matrices")
        return function(x, *args, **kwargs)

    return adapted
