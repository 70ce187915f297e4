"""Half precision, which LAPACK does not have."""

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
    """The function, computing half precision in float32; what is then float32 is cast back."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.dtype not in _HALF:
            return function(x, *args, **kwargs)
        out = function(*[_wide(value) for value in (x, *args)], **kwargs)
        if isinstance(out, tuple):
            return tuple([_narrow(part, x.dtype) for part in out])
        return _narrow(out, x.dtype)

    return adapted
