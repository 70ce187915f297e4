"""Elementwise comparisons, tests and logic."""

from __future__ import annotations

import mlx.core as mx
from mlx.core import array_equal as array_equal
from mlx.core import equal as equal
from mlx.core import greater as greater
from mlx.core import greater_equal as greater_equal
from mlx.core import isfinite as isfinite
from mlx.core import isinf as isinf
from mlx.core import isnan as isnan
from mlx.core import isneginf as isneginf
from mlx.core import isposinf as isposinf
from mlx.core import less as less
from mlx.core import less_equal as less_equal
from mlx.core import logical_and as logical_and
from mlx.core import logical_not as logical_not
from mlx.core import logical_or as logical_or
from mlx.core import logical_xor as logical_xor
from mlx.core import not_equal as not_equal

from ember_ml.backend.interface import Variants
from ember_ml.backend.mlx.bits import as_unsigned


def isclose(
    x: mx.array, y: mx.array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> mx.array:
    if not (rtol >= 0 and atol >= 0):
        raise ValueError("the tolerances must not be negative")
    if mx.issubdtype(x.dtype, mx.inexact):
        return mx.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if x.dtype == mx.bool_:
        x, y = x.astype(mx.uint8), y.astype(mx.uint8)
    distance = as_unsigned(mx.maximum(x, y) - mx.minimum(x, y))  # exact, even where it wraps
    return distance.astype(mx.float32) <= atol + rtol * mx.abs(y.astype(mx.float32))


def allclose(
    x: mx.array, y: mx.array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> mx.array:
    return mx.all(isclose(x, y, rtol, atol, equal_nan))


def isin(x: mx.array, elements: mx.array, invert: bool = False) -> mx.array:
    contained = mx.any(mx.expand_dims(x, -1) == elements.reshape(-1), axis=-1)
    return mx.logical_not(contained) if invert else contained


def isreal(x: mx.array) -> mx.array:
    return mx.imag(x) == 0


_SCALARS = {
    "equal": equal,
    "greater": greater,
    "greater_equal": greater_equal,
    "less": less,
    "less_equal": less_equal,
    "not_equal": not_equal,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
