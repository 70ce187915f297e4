"""Arithmetic on lists of arrays, for optimizers. Native arrays in, native arrays out.

Each function takes lists of arrays of any shapes and gives a list. One whose name ends in "_" may
overwrite its first list, which the caller gives up; MLX's arrays are values, so here none does.
Nothing is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import DTYPES

Arrays = Sequence[Any]

CHUNK_BYTES: int | None = None
"""How many bytes of parameters are renewed at once; MLX frees as it evaluates."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of (params, grads, state, scalars), compiled.

    The scalars go in as arrays, so that another learning rate does not compile it anew.
    """
    traced = mx.compile(function)

    def call(params: Arrays, grads: Arrays, state: Any, scalars: Sequence[Any]) -> Any:
        numbers = [mx.array(value, mx.float32) for value in scalars]
        return traced(params, grads, state, numbers)

    return call


def fused(rule: str) -> Callable[..., Any] | None:
    """A kernel that replaces a rule's arithmetic as a whole; the compiler fuses by itself."""
    return None


def shapes(xs: Arrays) -> list[Any]:
    """The shapes, to be compared."""
    return [x.shape for x in xs]


def epsilon(xs: Arrays) -> float:
    """The distance from 1 to the next number, in the dtype of the first."""
    return float(mx.finfo(xs[0].dtype).eps)


def full(like: Any, shape: tuple[int, ...], value: float, dtype: str) -> Any:
    """A new array, on the device of another."""
    return mx.full(shape, value, DTYPES[dtype])


def copy(xs: Arrays) -> list[Any]:
    """Copies; MLX's arrays are values."""
    return list(xs)


own = copy
"""Arrays to overwrite in place of these, which others may hold."""


def cast(xs: Arrays, dtype: str) -> list[Any]:
    """In another dtype; what has it already is given as it is."""
    return [x.astype(DTYPES[dtype]) for x in xs]


def scale(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x."""
    return [x * factor for x in xs]


scale_ = scale


def scale_each_(xs: Arrays, factors: Sequence[float]) -> list[Any]:
    """Each with a factor of its own."""
    return [x * factor for x, factor in zip(xs, factors, strict=True)]


def shift_(xs: Arrays, amount: float) -> list[Any]:
    """Amount + x."""
    return [x + amount for x in xs]


def add(xs: Arrays, ys: Arrays, factor: Any = 1.0) -> list[Any]:
    """Factor y + x."""
    return [x + factor * y for x, y in zip(xs, ys, strict=True)]


add_ = add


def multiply_(xs: Arrays, ys: Arrays) -> list[Any]:
    """Product; y may be 0-d."""
    return [x * y for x, y in zip(xs, ys, strict=True)]


def divide(xs: Arrays, ys: Arrays) -> list[Any]:
    """Quotient; y may be 0-d."""
    return [x / y for x, y in zip(xs, ys, strict=True)]


divide_ = divide


def lerp_(xs: Arrays, ys: Arrays, weight: Any) -> list[Any]:
    """Weight y + (1 - weight) x."""
    return [x + weight * (y - x) for x, y in zip(xs, ys, strict=True)]


def addcmul_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[Any]:
    """Factor y z + x."""
    return [x + factor * y * z for x, y, z in zip(xs, ys, zs, strict=True)]


def addcdiv_(xs: Arrays, ys: Arrays, zs: Arrays, factor: Any) -> list[Any]:
    """Factor y / z + x."""
    return [x + factor * (y / z) for x, y, z in zip(xs, ys, zs, strict=True)]


def maximum_(xs: Arrays, ys: Arrays) -> list[Any]:
    """The greater of the two."""
    return [mx.maximum(x, y) for x, y in zip(xs, ys, strict=True)]


def clamp_(xs: Arrays, low: float | None = None, high: float | None = None) -> list[Any]:
    """Between two bounds."""
    return [mx.clip(x, low, high) for x in xs]


def sqrt(xs: Arrays) -> list[Any]:
    """Square roots."""
    return [mx.sqrt(x) for x in xs]


def sign_(xs: Arrays) -> list[Any]:
    """Signs."""
    return [mx.sign(x) for x in xs]


def norms(xs: Arrays) -> list[Any]:
    """The Euclidean norm of each, as a 0-d array."""
    return [mx.sqrt(mx.sum(mx.square(x.astype(mx.float32)))) for x in xs]


def global_norm(xs: Arrays) -> Any:
    """The Euclidean norm of all together."""
    return mx.sqrt(sum(mx.sum(mx.square(x.astype(mx.float32))) for x in xs))


def clip_factor(norm: Any, most: float) -> Any:
    """What brings a norm, a 0-d array, down to the most allowed; at most 1.

    The small number is torch's, against a division by zero.
    """
    return mx.minimum(most / (norm + 1e-6), 1.0)


def scale_by(xs: Arrays, factor: Any) -> list[Any]:
    """Factor x, of a 0-d array; the dtypes stay."""
    return [(x * factor).astype(x.dtype) for x in xs]


def trust_ratios(xs: Arrays, ys: Arrays) -> list[Any]:
    """x / y of 0-d arrays; 1 where one of them is zero."""
    return [
        mx.where(mx.logical_and(x > 0, y > 0), x / y, mx.ones_like(x))
        for x, y in zip(xs, ys, strict=True)
    ]


def mean_squares(xs: Arrays, axis: int) -> list[Any]:
    """The mean of the squares along an axis, which stays with length 1."""
    return [mx.mean(x * x, axis=axis, keepdims=True) for x in xs]


def means(xs: Arrays, axis: int) -> list[Any]:
    """The mean along an axis, which stays with length 1."""
    return [mx.mean(x, axis=axis, keepdims=True) for x in xs]


def matmul(xs: Arrays, ys: Arrays) -> list[Any]:
    """Matrix products."""
    return [x @ y for x, y in zip(xs, ys, strict=True)]


def addmm(xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[Any]:
    """Scale x + factor (y z), of matrices."""
    return [mx.addmm(x, y, z, alpha=factor, beta=scale) for x, y, z in zip(xs, ys, zs, strict=True)]


def transpose(xs: Arrays) -> list[Any]:
    """The transposes of matrices."""
    return [x.T for x in xs]


def root_mean_square(xs: Arrays) -> list[Any]:
    """The root of the mean of the squares, as a 0-d array."""
    return [norm / math.sqrt(max(x.size, 1)) for norm, x in zip(norms(xs), xs, strict=True)]
