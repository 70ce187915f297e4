"""Half precision, which LAPACK does not have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def _cast(value: Any, source: type, target: type) -> Any:
    is_array = isinstance(value, (np.ndarray, np.generic))
    return value.astype(target) if is_array and value.dtype == source else value


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, computing float16 in float32; what is then float32 is cast back."""

    @functools.wraps(function)
    def adapted(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.dtype != np.float16:
            return function(x, *args, **kwargs)
        out = function(*[_cast(value, np.float16, np.float32) for value in (x, *args)], **kwargs)
        with np.errstate(over="ignore"):
            if isinstance(out, tuple):
                return tuple([_cast(part, np.float32, np.float16) for part in out])
            return _cast(out, np.float32, np.float16)

    return adapted
