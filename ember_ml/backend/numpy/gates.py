"""Gates of rows by C kernels: a function of one array times another array."""

from __future__ import annotations

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for

_FORWARD = {name: Kernel(f"{name}_gate", "pppiiiii") for name in ("silu", "sigmoid")}
_ADJOINT = {name: Kernel(f"{name}_gate_adjoint", "pppppiiiiii") for name in _FORWARD}


def as_rows(x: np.ndarray) -> np.ndarray:
    """Return the array as a matrix with contiguous rows, copied if the memory has no such rows."""
    rows = x.reshape(-1, x.shape[-1])
    return rows if rows.strides[1] == rows.itemsize else np.ascontiguousarray(rows)


def _stride(x: np.ndarray) -> int:
    return x.strides[0] // x.itemsize


def run(name: str, gate: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return function(gate) * value.

    Args:
        name: Function of the gate: "silu" or "sigmoid".
        gate: Matrix with contiguous rows, not empty.
        value: Matrix with contiguous rows in the shape of the gate.
    """
    out = np.empty(gate.shape, gate.dtype)
    pointers = [pointer(x[:1, :1]) for x in (gate, value, out)]
    sizes = (*gate.shape, _stride(gate), _stride(value))
    _FORWARD[name](SUFFIXES[gate.dtype.char], *pointers, *sizes, threads_for(2 * gate.size))
    return out


def pull(
    name: str,
    g: np.ndarray,
    gate: np.ndarray,
    value: np.ndarray,
    of_gate: np.ndarray,
    of_value: np.ndarray,
) -> None:
    """Write the gradients of the gate and the value.

    Args:
        name: Function of the gate: "silu" or "sigmoid".
        g: Gradient of the result, contiguous.
        gate: Matrix with contiguous rows, not empty.
        value: Matrix with contiguous rows in the shape of the gate.
        of_gate: Gradient of the gate to write.
        of_value: Gradient of the value to write, with the strides of `of_gate`.
    """
    pointers = [pointer(x[:1, :1]) for x in (g, gate, value, of_gate, of_value)]
    sizes = (*gate.shape, _stride(gate), _stride(value), _stride(of_gate))
    _ADJOINT[name](SUFFIXES[gate.dtype.char], *pointers, *sizes, threads_for(2 * gate.size))
