"""Gated activations, by C kernels."""

from __future__ import annotations

import numpy as np

from ember_ml.backend.numpy import gates
from ember_ml.backend.numpy import kernel_calls as native


def _halves(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """Return the halves of the axis as matrices, and whether the axis was moved to the end."""
    if not (native.is_served(x) and -x.ndim <= axis < x.ndim and x.shape[axis] % 2 == 0):
        return None
    moved = axis not in (-1, x.ndim - 1)
    rows = gates.as_rows(np.moveaxis(x, axis, -1) if moved else x)
    half = x.shape[axis] // 2
    return rows[:, :half], rows[:, half:], moved


def _joined(out: np.ndarray, x: np.ndarray, axis: int, moved: bool) -> np.ndarray:
    """Return the rows of the result in the shape of x with half of the axis."""
    if not moved:
        return out.reshape(*x.shape[:-1], out.shape[-1])
    outer = np.delete(x.shape, axis)
    return np.moveaxis(out.reshape(*outer, out.shape[-1]), -1, axis)


def glu(x: np.ndarray, axis: int = -1) -> np.ndarray | None:
    if (parts := _halves(x, axis)) is None:
        return None
    value, gate, moved = parts
    return _joined(gates.run("sigmoid", gate, value), x, axis, moved)


def swiglu(x: np.ndarray, axis: int = -1) -> np.ndarray | None:
    if (parts := _halves(x, axis)) is None:
        return None
    gate, value, moved = parts
    return _joined(gates.run("silu", gate, value), x, axis, moved)


def silu_gate(x: np.ndarray, gate: np.ndarray) -> np.ndarray | None:
    if x.shape != gate.shape or not native.is_served(x, gate):
        return None
    return gates.run("silu", gates.as_rows(gate), gates.as_rows(x)).reshape(x.shape)
