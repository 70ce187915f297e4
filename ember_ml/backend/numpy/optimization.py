"""Arithmetic on lists of arrays, for optimizers: `ember_ml.backend.interface.Optimization`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from ember_ml import _native
from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for
from ember_ml.backend.numpy import DTYPES
from ember_ml.backend.numpy.state_codes import decode_state as decode_state
from ember_ml.backend.numpy.state_codes import encode_state as encode_state

if TYPE_CHECKING:
    from ember_ml.backend.interface import Optimization
    from ember_ml.backend.numpy import optimization

    _checked: Optimization = optimization

Arrays: TypeAlias = Sequence[np.ndarray]
T = TypeVar("T")

CHUNK_BYTES: int | None = 64 << 20
"""Maximum size of the parameters that one call updates: the extra memory of a step."""


def compiled(function: Callable[..., T]) -> Callable[..., T]:
    """Return the function; NumPy does not compile."""
    return function


_ADAM = Kernel("adam", "pppppirrrrrrri")


def fused(name: str, values: Sequence[float | np.ndarray]) -> Callable[..., Any] | None:
    """Return a kernel (params, grads, state, options, values) for a whole update, or None.

    Args:
        name: Name of the algorithm, such as "adamw".
        values: Numbers of the step.
    """
    is_known = name in ("adam", "adamw") and _native.library is not None
    return functools.partial(_adam, name == "adamw") if is_known else None


def _adam(
    decoupled: bool, params: Arrays, grads: Arrays, state: Any, options: Any, values: Any
) -> tuple[Arrays, Any] | None:
    """Update parameters and state in place; return None if the kernel does not take them."""
    most = state["max_exp_avg_sq"] if options["amsgrad"] else [None] * len(params)
    grads = [np.ascontiguousarray(g) for g in grads]
    rows = list(zip(params, grads, state["exp_avg"], state["exp_avg_sq"], most, strict=True))
    if not all(_is_served(row) for row in rows):
        return None
    beta1, beta2 = options["betas"]
    numbers = [beta1, beta2, options["eps"], values.step_size, values.correction]
    numbers += [values.decay, 0.0] if decoupled else [1.0, options["weight_decay"]]
    for row in rows:
        addresses = [None if x is None else pointer(x) for x in row]
        size = row[0].size
        _ADAM(SUFFIXES[row[0].dtype.char], *addresses, size, *numbers, threads_for(size))
    return params, {name: state[name] for name in state}


def _is_served(row: Sequence[np.ndarray | None]) -> bool:
    """Return whether the arrays of a parameter are contiguous and of one dtype."""
    dtype = row[0].dtype  # type: ignore[union-attr]
    return dtype.char in SUFFIXES and all(
        x is None or (x.dtype == dtype and x.flags.c_contiguous and x.flags.writeable) for x in row
    )


def shapes(xs: Arrays) -> list[tuple[int, ...]]:
    """Return the shapes, in a form that can be compared."""
    return [x.shape for x in xs]


def epsilon(xs: Arrays) -> float:
    """Return the machine epsilon of the first array's dtype."""
    return float(np.finfo(xs[0].dtype).eps)


def full(like: np.ndarray, shape: tuple[int, ...], value: float, dtype: str) -> np.ndarray:
    """Return a constant array on the device of `like`."""
    return np.full(shape, value, DTYPES[dtype])


def copy(xs: Arrays) -> list[np.ndarray]:
    """Return copies that share no memory with `xs`."""
    return [np.array(x) for x in xs]


own = copy


def cast(xs: Arrays, dtype: str) -> list[np.ndarray]:
    """Return the arrays in a dtype; those that have it already are returned as they are."""
    return [np.asarray(x, DTYPES[dtype]) for x in xs]


def scale(xs: Arrays, factor: float | np.ndarray) -> list[np.ndarray]:
    """Return factor * x."""
    return [_asarray(x * factor) for x in xs]


def scale_(xs: Arrays, factor: float | np.ndarray) -> list[np.ndarray]:
    """Return factor * x."""
    return [np.multiply(x, factor, out=x) for x in xs]


def scale_each_(xs: Arrays, factors: Sequence[float]) -> list[np.ndarray]:
    """Return factor * x, with one factor for each array."""
    return [np.multiply(x, factor, out=x) for x, factor in zip(xs, factors, strict=True)]


def shift_(xs: Arrays, amount: float) -> list[np.ndarray]:
    """Return x + amount."""
    return [np.add(x, amount, out=x) for x in xs]


def add(xs: Arrays, ys: Arrays, factor: float | np.ndarray = 1.0) -> list[np.ndarray]:
    """Return x + factor * y."""
    return [_asarray(x + factor * y) for x, y in zip(xs, ys, strict=True)]


def add_(xs: Arrays, ys: Arrays, factor: float | np.ndarray = 1.0) -> list[np.ndarray]:
    """Return x + factor * y."""
    return [np.add(x, factor * y, out=x) for x, y in zip(xs, ys, strict=True)]


def multiply_(xs: Arrays, ys: Arrays) -> list[np.ndarray]:
    """Return x * y; y may be 0-d."""
    return [np.multiply(x, y, out=x) for x, y in zip(xs, ys, strict=True)]


def divide(xs: Arrays, ys: Arrays) -> list[np.ndarray]:
    """Return x / y; y may be 0-d."""
    return [_asarray(x / y) for x, y in zip(xs, ys, strict=True)]


def divide_(xs: Arrays, ys: Arrays) -> list[np.ndarray]:
    """Return x / y; y may be 0-d."""
    return [np.divide(x, y, out=x) for x, y in zip(xs, ys, strict=True)]


def lerp_(xs: Arrays, ys: Arrays, weight: float | np.ndarray) -> list[np.ndarray]:
    """Return x + weight * (y - x)."""
    return [np.add(x, weight * (y - x), out=x) for x, y in zip(xs, ys, strict=True)]


def addcmul_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float) -> list[np.ndarray]:
    """Return x + factor * y * z."""
    return [np.add(x, factor * y * z, out=x) for x, y, z in zip(xs, ys, zs, strict=True)]


def addcdiv_(xs: Arrays, ys: Arrays, zs: Arrays, factor: float | np.ndarray) -> list[np.ndarray]:
    """Return x + factor * y / z."""
    return [np.add(x, factor * (y / z), out=x) for x, y, z in zip(xs, ys, zs, strict=True)]


def maximum_(xs: Arrays, ys: Arrays) -> list[np.ndarray]:
    """Return the elementwise maximum."""
    return [np.maximum(x, y, out=x) for x, y in zip(xs, ys, strict=True)]


def clamp_(xs: Arrays, low: float | None = None, high: float | None = None) -> list[np.ndarray]:
    """Return x limited to [low, high]."""
    return [np.clip(x, low, high, out=x) for x in xs]


def sqrt(xs: Arrays) -> list[np.ndarray]:
    """Return the square roots."""
    return [_asarray(np.sqrt(x)) for x in xs]


def sign_(xs: Arrays) -> list[np.ndarray]:
    """Return the signs."""
    return [np.sign(x, out=x) for x in xs]


def norms(xs: Arrays) -> list[np.ndarray]:
    """Return the Euclidean norm of each array, 0-d."""
    return [_norm(x) for x in xs]


def _norm(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    flat = wide.ravel()
    return _asarray(np.sqrt(np.dot(flat, flat)))


def global_norm(xs: Arrays) -> np.ndarray:
    """Return the Euclidean norm of all arrays together, 0-d."""
    return _asarray(np.sqrt(np.sum(np.square(norms(xs)))))


def norm_parts(xs: Arrays) -> list[np.ndarray]:
    """Return the norm of all arrays together, for `read_norm`."""
    return [global_norm(xs)]


def read_norm(parts: Arrays) -> float:
    """Return the norm as a number."""
    return float(parts[0])


def clip_factor(norm: np.ndarray, most: float) -> np.ndarray:
    """Return min(1, most / norm), 0-d.

    The small constant is torch's, against division by zero.
    """
    return _asarray(np.minimum(most / (norm + 1e-6), 1.0))


def scale_by(xs: Arrays, factor: np.ndarray | float) -> list[np.ndarray]:
    """Return factor * x in the dtype of x; the factor is a number or a 0-d array."""
    return [_asarray(x * factor).astype(x.dtype, copy=False) for x in xs]


def trust_ratios(xs: Arrays, ys: Arrays) -> list[np.ndarray]:
    """Return x / y of 0-d arrays; 1 where one of them is zero."""
    return [
        _asarray(x / y if x > 0 and y > 0 else np.ones_like(x)) for x, y in zip(xs, ys, strict=True)
    ]


def mean_squares(xs: Arrays, axis: int) -> list[np.ndarray]:
    """Return the mean of the squares along an axis, with keepdims."""
    return means([x * x for x in xs], axis)


def means(xs: Arrays, axis: int) -> list[np.ndarray]:
    """Return the mean along an axis, with keepdims."""
    return [np.sum(x, axis=axis, keepdims=True) / max(x.shape[axis], 1) for x in xs]


def matmul(xs: Arrays, ys: Arrays) -> list[np.ndarray]:
    """Return the matrix products."""
    return [x @ y for x, y in zip(xs, ys, strict=True)]


def addmm(xs: Arrays, ys: Arrays, zs: Arrays, scale: float, factor: float) -> list[np.ndarray]:
    """Return scale * x + factor * (y @ z)."""
    return [scale * x + factor * (y @ z) for x, y, z in zip(xs, ys, zs, strict=True)]


def transpose(xs: Arrays) -> list[np.ndarray]:
    """Return the transposed matrices."""
    return [x.T for x in xs]


def root_mean_square(xs: Arrays) -> list[np.ndarray]:
    """Return the root mean square of each array, 0-d."""
    return [_asarray(_norm(x) / math.sqrt(max(x.size, 1))) for x in xs]


def _asarray(x: np.ndarray | float) -> np.ndarray:
    return np.asarray(x)  # NumPy returns scalars for 0-d arrays
