"""Elementwise arithmetic."""

from __future__ import annotations

import numpy as np
from numpy import abs as abs
from numpy import add as add
from numpy import divide as divide
from numpy import fmod as fmod
from numpy import gcd as gcd
from numpy import heaviside as heaviside
from numpy import lcm as lcm
from numpy import multiply as multiply
from numpy import negative as negative
from numpy import positive as positive
from numpy import power as float_power
from numpy import reciprocal as reciprocal
from numpy import remainder as remainder
from numpy import sign as sign
from numpy import square as square
from numpy import subtract as subtract

from ember_ml.backend.interface import Variants


def floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.floor_divide(x, y)
    if out.dtype.kind != "f":
        return out
    infinite = np.isinf(x) | np.isinf(y)
    if not infinite.any():
        return out
    with np.errstate(all="ignore"):
        return np.where(infinite, np.divide(x, y), out)


def divmod(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return floor_divide(x, y), remainder(x, y)


def pow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Handle negative powers of integers, which NumPy rejects."""
    dtype = (x if hasattr(x, "dtype") else y).dtype
    if dtype.kind != "i" or not np.any(np.less(y, 0)):
        return x**y
    fraction = np.less(y, 0)
    out = np.power(x, np.where(fraction, np.bitwise_and(y, 1), y).astype(dtype))
    return np.where(fraction & (np.abs(x) != 1), dtype.type(0), out)


def multiply_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    product = np.multiply(x, y)
    if product.ndim and product.dtype == z.dtype and z.shape == product.shape[-z.ndim :]:
        return np.add(product, z, out=product)  # no second array
    return np.add(product, z)


def lerp(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    step = np.subtract(y, x)
    return np.where(np.abs(weight) < 0.5, x + weight * step, y - (1 - weight) * step)


_SCALARS = {
    "add": add,
    "divide": divide,
    "floor_divide": floor_divide,
    "float_power": float_power,
    "fmod": fmod,
    "multiply": multiply,
    "pow": pow,
    "remainder": remainder,
    "subtract": subtract,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
