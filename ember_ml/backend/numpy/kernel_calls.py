"""Calls of the C kernels by the ops of this backend: which arrays they take, and their layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ember_ml import _native
from ember_ml._native.calls import SUFFIXES, Kernel, pointer, threads_for

SMALL = 512
"""Number of elements below which NumPy is as fast as the call of a kernel."""


def is_served(x: np.ndarray, *others: np.ndarray | None) -> bool:
    """Return whether the kernels take these arrays: aligned, of one dtype, and not too small."""
    return (
        _native.library is not None
        and x.size >= SMALL
        and x.dtype.char in SUFFIXES
        and x.flags.aligned
        and all(y is None or (y.dtype == x.dtype and y.flags.aligned) for y in others)
    )


def dense(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the array without gaps in memory, copied if it has any, and an empty one like it."""
    out = np.empty_like(x)
    if out.strides != x.strides:
        x, out = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    return x, out


def in_layout(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return the array with the strides of a dense one, copied if it has others."""
    if x.strides == like.strides:
        return x
    out = np.empty_like(like)
    np.copyto(out, x)
    return out


def address(x: np.ndarray | None) -> int | None:
    """Return the address of an array; None for a null pointer."""
    return None if x is None else pointer(x)


def elementwise(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return an op of one array: a kernel, and `otherwise` for arrays that it does not take."""
    kernel = Kernel(name, "ppii")

    def run(x: np.ndarray) -> np.ndarray:
        if not is_served(x):
            return otherwise(x)
        x, out = dense(x)
        kernel(SUFFIXES[x.dtype.char], pointer(x), pointer(out), x.size, threads_for(x.size))
        return out

    return run


def elementwise_adjoint(name: str) -> Callable[..., Any]:
    """Return the adjoint of such an op, a function of g and x that may return None."""
    kernel = Kernel(f"{name}_adjoint", "pppii")

    def run(g: np.ndarray, x: np.ndarray) -> np.ndarray | None:
        if not is_served(x, g) or g.shape != x.shape:
            return None
        x, out = dense(x)
        g, size = in_layout(g, x), x.size
        suffix, threads = SUFFIXES[x.dtype.char], threads_for(size)
        kernel(suffix, pointer(g), pointer(x), pointer(out), size, threads)
        return out

    return run


def as_rows(x: np.ndarray, axis: int) -> tuple[np.ndarray, bool]:
    """Return the array with the axis last and contiguous, and whether the axis was moved."""
    moved = axis not in (-1, x.ndim - 1)
    return np.ascontiguousarray(np.moveaxis(x, axis, -1) if moved else x), moved


def along_axis(kernel: Kernel, axis: int, *arrays: np.ndarray) -> np.ndarray:
    """Return the result of a kernel over rows: a function of arrays, out, rows, columns, threads.

    Args:
        kernel: The kernel.
        axis: Axis of the rows.
        arrays: Arrays of one dtype and shape, not empty.
    """
    rows = [as_rows(x, axis) for x in arrays]
    x, moved = rows[0]
    out, columns = np.empty_like(x), x.shape[-1]
    pointers = [pointer(x) for x, _ in rows]
    suffix, threads = SUFFIXES[x.dtype.char], threads_for(x.size)
    kernel(suffix, *pointers, pointer(out), x.size // columns, columns, threads)
    return np.moveaxis(out, -1, axis) if moved else out
