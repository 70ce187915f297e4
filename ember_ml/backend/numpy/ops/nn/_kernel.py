"""Wrapper of neural network kernels: no warnings, float16 computed in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a kernel without warnings, converting float16 arrays to float32 and back."""

    @functools.wraps(function)
    def run(x: np.ndarray, *args: Any, **kwargs: Any) -> np.ndarray:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if x.dtype != np.float16:
                return function(x, *args, **kwargs)
            return function(_wide(x), *map(_wide, args), **kwargs).astype(np.float16)

    return run


def _wide(value: np.ndarray) -> np.ndarray:
    is_half = isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.float16
    return value.astype(np.float32) if is_half else value
