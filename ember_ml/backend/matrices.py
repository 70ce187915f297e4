"""What linear algebra asks of its matrices, the same for every backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def square(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refusing matrices that are not square in the same words on every backend."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError("the shape is not that of square matrices")
        return function(x, *args, **kwargs)

    return adapted


def widened(
    halves: tuple[Any, ...], wide: Callable[[Any], Any], narrow: Callable[[Any, Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for functions of matrices: half precision is computed in float32 and cast back.

    Args:
        halves: the backend's dtypes of half precision.
        wide: an argument in float32 if it is an array of half precision, else as it is.
        narrow: a result in the dtype given if it is float32, else as it is.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
            if x.ndim < 2:
                raise ValueError("the shape is not that of matrices")
            if x.dtype not in halves:
                return function(x, *args, **kwargs)
            out = function(*[wide(value) for value in (x, *args)], **kwargs)
            if isinstance(out, tuple):
                return tuple([narrow(part, x.dtype) for part in out])
            return narrow(out, x.dtype)

        return adapted

    return decorate
