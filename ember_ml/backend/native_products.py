"""Gradients of small weights by a C kernel, for the arrays of any framework."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame

MOST_WEIGHTS = 1 << 17
"""Number of weights above which the framework's product is faster."""


def weight_gradient(frame: Frame, dz: Any, entries: Any) -> Any:
    """Return the gradient of a weight, the sum over all rows of dz.T @ entries.

    Args:
        frame: Access to the arrays.
        dz: Gradients of the outputs of a product, (..., width).
        entries: Its inputs, (..., depth).
    """
    a, b = dz.reshape((-1, dz.shape[-1])), entries.reshape((-1, entries.shape[-1]))
    (rows, width), depth = a.shape, b.shape[1]
    if width < frame.size("ember_row_products_block") or width * depth > MOST_WEIGHTS:
        return a.T @ b
    out = frame.empty((width, depth))
    threads = frame.threads_for(rows * width * depth // 8)
    arrays = [frame.copy(a, (rows, width)), frame.copy(b, (rows, depth)), out]
    frame.call_arrays("ember_row_products", arrays, [rows, width, depth, threads])
    return out
