"""Arguments of the C kernels of softplus after a linear map with few features."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame

MOST_FEATURES = 16
"""Largest number of input features of the kernels; wider products are faster in BLAS."""


def fits(x: Any, weight: Any, bias: Any, least: int) -> bool:
    """Return whether the kernels take the shapes of `softplus_linear`'s operands.

    Args:
        x: (..., features).
        weight: (channels, features).
        bias: (channels,), or None.
        least: Number of elements of the result from which the kernels are faster, at least 1.
    """
    if weight.ndim != 2 or x.ndim == 0:
        return False
    channels, features = weight.shape
    return (
        0 < features <= MOST_FEATURES
        and x.shape[-1] == features
        and (bias is None or tuple(bias.shape) == (channels,))
        and _rows(x) * channels >= least
    )


def forward(frame: Frame, x: Any, weight: Any, bias: Any) -> Any:
    """Return `softplus_linear` of operands that fit.

    Args:
        frame: Access to the arrays.
        x: (..., features).
        weight: (channels, features).
        bias: (channels,), or None.
    """
    channels, features = weight.shape
    rows, stride = _as_rows(frame, x)
    out = frame.empty((*x.shape[:-1], channels))
    sizes = (_rows(x), features, channels, stride, frame.threads_for(2 * _rows(x) * channels))
    workspace = frame.empty((frame.size("ember_softplus_linear_size", features, channels, 0),))
    weight = frame.copy(weight, (channels, features))
    bias = None if bias is None else frame.copy(bias, (channels,))
    frame.call_arrays("ember_softplus_linear", (rows, weight, bias, workspace, out), sizes)
    return out


def adjoint(frame: Frame, g: Any, out: Any, x: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Return the gradients of x, weight and bias.

    Args:
        frame: Access to the arrays.
        g: Gradient of the result.
        out: Result of `forward`.
        x: (..., features).
        weight: (channels, features).
    """
    channels, features = weight.shape
    rows, stride = _as_rows(frame, x)
    shape = (*x.shape[:-1], channels)
    parts = min(_rows(x), frame.threads_for(2 * _rows(x) * channels))
    workspace = frame.empty((frame.size("ember_softplus_linear_size", features, channels, parts),))
    operands = (
        *(frame.copy(g, shape), rows, frame.copy(weight, (channels, features))),
        *(frame.copy(out, shape), workspace),
    )
    grads = frame.empty((*x.shape,)), frame.empty((channels, features)), frame.empty((channels,))
    sizes = (_rows(x), features, channels, stride, parts)
    frame.call_arrays("ember_softplus_linear_adjoint", (*operands, *grads), sizes)
    return grads


def _rows(x: Any) -> int:
    count = 1
    for size in x.shape[:-1]:
        count *= size
    return count


def _as_rows(frame: Frame, x: Any) -> tuple[Any, int]:
    """Return x as a matrix with contiguous rows, copied if it has none, and their stride."""
    rows = x.reshape(-1, x.shape[-1])
    stride, inner = frame.strides(rows)
    if inner == 1:
        return rows, stride
    return frame.copy(rows, tuple(rows.shape)), x.shape[-1]
