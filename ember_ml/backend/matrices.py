"""Decorators of linear algebra functions, shared by the backends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def square(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function to raise if its matrices are not square."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError("the shape must be that of square matrices")
        return function(x, *args, **kwargs)

    return adapted


def widened(
    halves: tuple[Any, ...], wide: Callable[[Any], Any], narrow: Callable[[Any, Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that computes functions of half-precision matrices in float32.

    Args:
        halves: Native dtypes of half precision.
        wide: Function that casts an argument of half precision to float32.
        narrow: Function that casts a float32 result to the given dtype.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
            if x.ndim < 2:
                raise ValueError("the shape must be that of matrices")
            if x.dtype not in halves:
                return function(x, *args, **kwargs)
            out = function(*[wide(value) for value in (x, *args)], **kwargs)
            if isinstance(out, tuple):
                return tuple([narrow(part, x.dtype) for part in out])
            return narrow(out, x.dtype)

        return adapted

    return decorate
