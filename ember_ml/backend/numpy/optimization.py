"""Arithmetic on lists of arrays, for optimizers. Native arrays in, native arrays out.

Each function takes lists of arrays of any shapes and gives a list. One whose name ends in "_" may
overwrite its first list, which the caller gives up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ember_ml.backend.numpy import DTYPES

Arrays = Sequence[Any]

CHUNK_BYTES: int | None = 64 << 20
"""How many bytes of parameters are renewed at once: so much is held twice for a moment."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of (params, grads, state, scalars), made fast; here it is so already."""
    return function


def fused(rule: str) -> Callable[..., Any] | None:
    """A kernel that replaces a rule's arithmetic as a whole; NumPy has none."""
    return None


def shapes(xs: Arrays) -> list[Any]:
    """The shapes, to be compared."""
    return [x.shape for x in xs]


def epsilon(xs: Arrays) -> float:
    """The distance from 1 to the next number, in the dtype of the first."""
    return float(np.finfo(xs[0].dtype).eps)


def full(like: Any, shape: tuple[int, ...], value: float, dtype: str) -> Any:
    """A new array, on the device of another."""
    return np.full(shape, value, DTYPES[dtype])


def copy(xs: Arrays) -> list[Any]:
    """Copies with memory of their own."""
    return [np.array(x) for x in xs]


own = copy
"""Arrays to overwrite in place of these, which others may hold."""


def cast(xs: Arrays, dtype: str) -> list[Any]:
    """In another dtype; what has it already is given as it is."""
    return [np.asarray(x, DTYPES[dtype]) for x in xs]


def scale(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x."""
    return [_asarray(x * factor) for x in xs]


def scale_(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x."""
    return [np.multiply(x, factor, out=x) for x in xs]


def scale_each_(xs: Arrays, factors: Sequence[float]) -> list[Any]:
    """Each with a factor of its own."""
    return [np.multiply(x, factor, out=x) for x, factor in zip(xs, factors, strict=True)]


def shift_(xs: Arrays, amount: float) -> list[Any]:
    """Amount + x."""
    return [np.add(x, amount, out=x) for x in xs]


def add(xs: Arrays, ys: Arrays, factor: Any = 1.0) -> list[Any]:
    """Factor y + x."""
    return [_asarray(x + factor * y) for x, y in zip(xs, ys, strict=True)]


def add_(xs: Arrays, ys: Arrays, factor: Any = 1.0) -> list[Any]:
    """Factor y + x."""
    return [np.add(x, factor * y, out=x) for x, y in zip(xs, ys, strict=True)]


def multiply_(xs: Arrays, ys: Arrays) -> list[Any]:
    """Product; y may be 0-d."""
    return [np.multiply(x, y, out=x) for x, y in zip(xs, ys, strict=True)]


def divide(xs: Arrays, ys: Arrays) -> list[Any]:
    """Quotient."""
    return [_asarray(x / y) for x, y in zip(xs, ys, strict=True)]


def divide_(xs: Arrays, ys: Arrays) -> list[Any]:
    """Quotient; y may be 0-d."""
    return [np.divide(x, y, out=x) for x, y in zip(xs, ys, strict=True)]


def lerp_(xs: Arrays, ys: Arrays, weight: Any) -> list[Any]:
    """Weight y + (1 - weight) x."""
    return [np.add(x, weight * (y - x), out=x) for x, y in zip(xs, ys, strict=True)]


def addcmul_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[Any]:
    """Factor y z + x."""
    return [np.add(x, factor * y * z, out=x) for x, y, z in zip(xs, ys, zs, strict=True)]


def addcdiv_(xs: Arrays, ys: Arrays, zs: Arrays, factor: Any) -> list[Any]:
    """Factor y / z + x."""
    return [np.add(x, factor * (y / z), out=x) for x, y, z in zip(xs, ys, zs, strict=True)]


def maximum_(xs: Arrays, ys: Arrays) -> list[Any]:
    """The greater of the two."""
    return [np.maximum(x, y, out=x) for x, y in zip(xs, ys, strict=True)]


def clamp_(xs: Arrays, low: float | None = None, high: float | None = None) -> list[Any]:
    """Between two bounds."""
    return [np.clip(x, low, high, out=x) for x in xs]


def sqrt(xs: Arrays) -> list[Any]:
    """Square roots."""
    return [_asarray(np.sqrt(x)) for x in xs]


def sign_(xs: Arrays) -> list[Any]:
    """Signs."""
    return [np.sign(x, out=x) for x in xs]


def norms(xs: Arrays) -> list[Any]:
    """The Euclidean norm of each, as a 0-d array."""
    return [_norm(x) for x in xs]


def _norm(x: Any) -> Any:
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    flat = wide.ravel()
    return _asarray(np.sqrt(np.dot(flat, flat)))


def global_norm(xs: Arrays) -> Any:
    """The Euclidean norm of all together."""
    return _asarray(np.sqrt(np.sum(np.square(norms(xs)))))


def clip_factor(norm: Any, most: float) -> Any:
    """What brings a norm, a 0-d array, down to the most allowed; at most 1.

    The small number is torch's, against a division by zero.
    """
    return _asarray(np.minimum(most / (norm + 1e-6), 1.0))


def scale_by(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x, of a 0-d array; the dtypes stay."""
    return [_asarray(x * factor).astype(x.dtype, copy=False) for x in xs]


def trust_ratios(xs: Arrays, ys: Arrays) -> list[Any]:
    """x / y of 0-d arrays; 1 where one of them is zero."""
    return [
        _asarray(x / y if x > 0 and y > 0 else np.ones_like(x)) for x, y in zip(xs, ys, strict=True)
    ]


def mean_squares(xs: Arrays, axis: int) -> list[Any]:
    """The mean of the squares along an axis, which stays with length 1."""
    return means([x * x for x in xs], axis)


def means(xs: Arrays, axis: int) -> list[Any]:
    """The mean along an axis, which stays with length 1."""
    return [np.sum(x, axis=axis, keepdims=True) / max(x.shape[axis], 1) for x in xs]


def matmul(xs: Arrays, ys: Arrays) -> list[Any]:
    """Matrix products."""
    return [x @ y for x, y in zip(xs, ys, strict=True)]


def addmm(xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[Any]:
    """Scale x + factor (y z), of matrices."""
    return [scale * x + factor * (y @ z) for x, y, z in zip(xs, ys, zs, strict=True)]


def transpose(xs: Arrays) -> list[Any]:
    """The transposes of matrices."""
    return [x.T for x in xs]


def root_mean_square(xs: Arrays) -> list[Any]:
    """The root of the mean of the squares, as a 0-d array."""
    return [_asarray(_norm(x) / math.sqrt(max(x.size, 1))) for x in xs]


def _asarray(x: Any) -> Any:
    return np.asarray(x)  # an op on 0-d arrays gives a scalar
