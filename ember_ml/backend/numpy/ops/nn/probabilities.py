"""Softmax."""

from __future__ import annotations

import numpy as np

from ember_ml._native.calls import Kernel
from ember_ml.backend.interface import Variants
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.ops.nn._kernel import kernel

_KERNELS = {name: Kernel(name, "ppiii") for name in ("softmax", "log_softmax")}
_exp, _maximum, _total = np.exp, np.maximum.reduce, np.add.reduce


def _check_axis(x: np.ndarray, axis: int) -> None:
    """Raise unless the axis is one of x; NumPy would also take None and tuples."""
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"axis={axis} is out of range")


def _shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """Return a copy of x, shifted to a maximum of 0 along the axis."""
    _check_axis(x, axis)
    return x - np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf)


@kernel
def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    weights = _shifted(x, axis)
    np.exp(weights, out=weights)
    weights /= np.add.reduce(weights, axis, keepdims=True)
    return weights


# For rows of -inf. A decorator costs less than a `with` block.
@np.errstate(invalid="ignore")  # type: ignore[untyped-decorator]
def _softmax_wide(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Softmax for dtypes other than half precision."""
    _check_axis(x, axis)
    if native.is_served(x):
        return native.along_axis(_KERNELS["softmax"], axis, x)
    weights = x - _maximum(x, axis, None, None, True, -np.inf)
    _exp(weights, weights)
    weights /= _total(weights, axis, None, None, True)
    return weights


@kernel
def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    if native.is_served(x):
        _check_axis(x, axis)
        return native.along_axis(_KERNELS["log_softmax"], axis, x)
    scores = _shifted(x, axis)
    scores -= np.log(np.add.reduce(np.exp(scores), axis, keepdims=True))
    return scores


VARIANTS = Variants(by_dtype={"softmax": dict.fromkeys(("float32", "float64"), _softmax_wide)})
