"""Arithmetic on lists of arrays, for optimizers: `ember_ml.backend.interface.Optimization`.

MLX arrays are immutable: functions whose name ends in "_" overwrite nothing. Nothing is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import mlx.core as mx
import numpy as np

from ember_ml.backend.mlx import DTYPES
from ember_ml.backend.mlx.state_codes import decode_state as decode_state
from ember_ml.backend.mlx.state_codes import encode_state as encode_state

if TYPE_CHECKING:
    from ember_ml.backend.interface import Optimization
    from ember_ml.backend.mlx import optimization

    _checked: Optimization = optimization

Arrays: TypeAlias = Sequence[mx.array]
State: TypeAlias = Mapping[str, Arrays]
T = TypeVar("T")

CHUNK_BYTES: int | None = None
"""Maximum size of the parameters that one call updates; MLX frees memory as it evaluates."""


SMALL = 2**16
"""Number of elements up to which the host sums the squares of an array in less time than MLX."""


def compiled(function: Callable[..., T]) -> Callable[..., T]:
    """Return a compiled function of (params, grads, state, values).

    The values, a NamedTuple of numbers, become arrays: a new learning rate does not recompile.
    """
    traced: dict[type, Callable[..., T]] = {}

    def call(params: Arrays, grads: Arrays, state: State, values: tuple[float, ...]) -> T:
        cls = type(values)
        if cls not in traced:
            traced[cls] = mx.compile(lambda *args: function(*args[:3], cls(*args[3])))
        numbers = [mx.array(value, mx.float32) for value in values]
        return traced[cls](params, grads, state, numbers)

    return call


def fused(name: str, values: Sequence[float | mx.array]) -> None:
    """Return None: MLX's compiler fuses the arithmetic of an update itself."""


def shapes(xs: Arrays) -> list[tuple[int, ...]]:
    """Return the shapes, in a form that can be compared."""
    return [x.shape for x in xs]


def epsilon(xs: Arrays) -> float:
    """Return the machine epsilon of the first array's dtype."""
    return float(mx.finfo(xs[0].dtype).eps)


def full(like: mx.array, shape: tuple[int, ...], value: float, dtype: str) -> mx.array:
    """Return a constant array on the device of `like`."""
    return mx.full(shape, mx.array(value, DTYPES[dtype]))  # its own dtype argument is ignored


def copy(xs: Arrays) -> list[mx.array]:
    """Return the arrays; MLX arrays are immutable."""
    return list(xs)


own = copy


def cast(xs: Arrays, dtype: str) -> list[mx.array]:
    """Return the arrays in a dtype; those that have it already are returned as they are."""
    return [x.astype(DTYPES[dtype]) for x in xs]


def scale(xs: Arrays, factor: float | mx.array) -> list[mx.array]:
    """Return factor * x."""
    return [x * factor for x in xs]


scale_ = scale


def scale_each_(xs: Arrays, factors: Sequence[float]) -> list[mx.array]:
    """Return factor * x, with one factor for each array."""
    return [x * factor for x, factor in zip(xs, factors, strict=True)]


def shift_(xs: Arrays, amount: float) -> list[mx.array]:
    """Return x + amount."""
    return [x + amount for x in xs]


def add(xs: Arrays, ys: Arrays, factor: float | mx.array = 1.0) -> list[mx.array]:
    """Return x + factor * y."""
    return [x + factor * y for x, y in zip(xs, ys, strict=True)]


add_ = add


def multiply_(xs: Arrays, ys: Arrays) -> list[mx.array]:
    """Return x * y; y may be 0-d."""
    return [x * y for x, y in zip(xs, ys, strict=True)]


def divide(xs: Arrays, ys: Arrays) -> list[mx.array]:
    """Return x / y; y may be 0-d."""
    return [x / y for x, y in zip(xs, ys, strict=True)]


divide_ = divide


def lerp_(xs: Arrays, ys: Arrays, weight: float | mx.array) -> list[mx.array]:
    """Return x + weight * (y - x)."""
    return [x + weight * (y - x) for x, y in zip(xs, ys, strict=True)]


def addcmul_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[mx.array]:
    """Return x + factor * y * z."""
    return [x + factor * y * z for x, y, z in zip(xs, ys, zs, strict=True)]


def addcdiv_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float | mx.array) -> list[mx.array]:
    """Return x + factor * y / z."""
    return [x + factor * (y / z) for x, y, z in zip(xs, ys, zs, strict=True)]


def maximum_(xs: Arrays, ys: Arrays) -> list[mx.array]:
    """Return the elementwise maximum."""
    return [mx.maximum(x, y) for x, y in zip(xs, ys, strict=True)]


def clamp_(xs: Arrays, low: float | None = None, high: float | None = None) -> list[mx.array]:
    """Return x limited to [low, high]."""
    return [mx.clip(x, low, high) for x in xs]


def sqrt(xs: Arrays) -> list[mx.array]:
    """Return the square roots."""
    return [mx.sqrt(x) for x in xs]


def sign_(xs: Arrays) -> list[mx.array]:
    """Return the signs."""
    return [mx.sign(x) for x in xs]


def norms(xs: Arrays) -> list[mx.array]:
    """Return the Euclidean norm of each array, 0-d."""
    return [mx.sqrt(mx.sum(mx.square(x.astype(mx.float32)))) for x in xs]


def global_norm(xs: Arrays) -> mx.array:
    """Return the Euclidean norm of all arrays together, 0-d."""
    return mx.sqrt(sum(mx.sum(mx.square(x.astype(mx.float32))) for x in xs))


def norm_parts(xs: Arrays) -> list[mx.array]:
    """Return the small arrays, and the norm of the others, for `read_norm`."""
    small = [x for x in xs if _is_small(x)]
    others = [x for x in xs if not _is_small(x)]
    return [*small, global_norm(others)] if others else small


def _is_small(x: mx.array) -> bool:
    return x.size <= SMALL and x.dtype == mx.float32


def read_norm(parts: Arrays) -> float:
    """Return the norm as a number, computed on the host, which has access to all memory."""
    total = 0.0
    for part in parts:
        flat = np.array(part, copy=False).ravel()
        total += float(np.dot(flat, flat))
    return math.sqrt(total) if total >= 0.0 else math.nan


def clip_factor(norm: mx.array, most: float) -> mx.array:
    """Return min(1, most / norm), 0-d.

    The small constant is torch's, against division by zero.
    """
    return mx.minimum(most / (norm + 1e-6), 1.0)


def scale_by(xs: Arrays, factor: mx.array | float) -> list[mx.array]:
    """Return factor * x in the dtype of x; the factor is a number or a 0-d array."""
    return [(x * factor).astype(x.dtype) for x in xs]


def trust_ratios(xs: Arrays, ys: Arrays) -> list[mx.array]:
    """Return x / y of 0-d arrays; 1 where one of them is zero."""
    return [
        mx.where(mx.logical_and(x > 0, y > 0), x / y, mx.ones_like(x))
        for x, y in zip(xs, ys, strict=True)
    ]


def mean_squares(xs: Arrays, axis: int) -> list[mx.array]:
    """Return the mean of the squares along an axis, with keepdims."""
    return [mx.mean(x * x, axis=axis, keepdims=True) for x in xs]


def means(xs: Arrays, axis: int) -> list[mx.array]:
    """Return the mean along an axis, with keepdims."""
    return [mx.mean(x, axis=axis, keepdims=True) for x in xs]


def matmul(xs: Arrays, ys: Arrays) -> list[mx.array]:
    """Return the matrix products."""
    return [x @ y for x, y in zip(xs, ys, strict=True)]


def addmm(xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[mx.array]:
    """Return scale * x + factor * (y @ z)."""
    return [mx.addmm(x, y, z, alpha=factor, beta=scale) for x, y, z in zip(xs, ys, zs, strict=True)]


def transpose(xs: Arrays) -> list[mx.array]:
    """Return the transposed matrices."""
    return [x.T for x in xs]


def root_mean_square(xs: Arrays) -> list[mx.array]:
    """Return the root mean square of each array, 0-d."""
    return [norm / math.sqrt(max(x.size, 1)) for norm, x in zip(norms(xs), xs, strict=True)]
