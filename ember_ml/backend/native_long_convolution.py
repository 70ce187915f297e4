"""Arguments of the C kernels of long causal filters, in the layout (channels, batch, time)."""

from __future__ import annotations

from typing import Any

from ember_ml._native.frame import Frame

MOST_LENGTH = 1024
"""Largest number of positions of the kernels."""


def convolve(frame: Frame, x: Any, kernel: Any) -> Any:
    """Return each channel convolved with its own filter.

    Args:
        frame: Access to the arrays.
        x: (channels, batch, time), not empty, with at most `MOST_LENGTH` positions.
        kernel: (channels, taps); taps after the last position have no effect.
    """
    x, filters = frame.copy(x, tuple(x.shape)), _filters(frame, x, kernel)
    out = frame.empty(tuple(x.shape))
    frame.call_arrays("ember_long_filters", (x, filters, out), _sizes(frame, x, filters))
    return out


def pull(frame: Frame, x: Any, g: Any, kernel: Any) -> tuple[Any, Any]:
    """Return the gradients of x and of the taps that have an effect.

    Args:
        frame: Access to the arrays.
        x: (channels, batch, time), not empty, with at most `MOST_LENGTH` positions.
        g: Gradient of the result of `convolve`.
        kernel: (channels, taps).
    """
    x, g = (frame.copy(each, tuple(x.shape)) for each in (x, g))
    filters = _filters(frame, x, kernel)
    of_x, of_filters = frame.empty(tuple(x.shape)), frame.empty(tuple(filters.shape))
    arrays = (x, g, filters, of_x, of_filters)
    frame.call_arrays("ember_long_filters_adjoint", arrays, _sizes(frame, x, filters))
    return of_x, of_filters


def _filters(frame: Frame, x: Any, kernel: Any) -> Any:
    taps = min(x.shape[2], kernel.shape[1])
    return frame.copy(kernel[:, :taps], (kernel.shape[0], taps))


def _sizes(frame: Frame, x: Any, filters: Any) -> tuple[int, ...]:
    channels, batch, length = x.shape
    taps = filters.shape[1]
    threads = min(channels, frame.threads_for(channels * batch * length * taps // 8))
    return channels, batch, length, taps, threads
