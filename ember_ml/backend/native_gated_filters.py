"""Arguments of the C kernels of Hyena's operator: gates, short filters and direct long filters."""

from __future__ import annotations

import math
from typing import Any

from ember_ml._native.frame import Frame


def forward(frame: Frame, operands: Any, mask: Any, keep: bool) -> tuple[Any, Any]:
    """Return the result, (channels, batch, time), and an array that `adjoint` reuses, or None.

    Args:
        frame: Access to the arrays.
        operands: x (batch, shared, time), weight, bias and kernel of `gated_long_conv`, with at
            most `native_long_convolution.MOST_LENGTH` positions, not empty.
        mask: (batch, time), False for padding; None if there is none.
        keep: Whether to return the result of the long filters as that array. Between the examples,
            it has as many unused elements as the short filters have taps, less one.
    """
    arrays, sizes, shape = _arguments(frame, operands, mask)
    out, work = frame.empty(shape), _work(frame, sizes)
    mixed = frame.empty((*shape[:2], _step(sizes))) if keep else None
    frame.call_arrays("ember_gated_filters", (*arrays, mixed, work, out), (*sizes, 0, 0))
    return out, mixed


def adjoint(frame: Frame, operands: Any, mask: Any, mixed: Any, g: Any) -> list[Any]:
    """Return the gradients of x (shared, batch, time), weight, bias and the taps in use.

    Args:
        frame: Access to the arrays.
        operands: As in `forward`.
        mask: As in `forward`.
        mixed: Second result of `forward`; None to compute it again.
        g: Gradient of the result, (batch, channels, time).
    """
    arrays, sizes, _ = _arguments(frame, operands, mask)
    g, *strides = frame.rows(g)
    shared, channels, batch, length, taps, long_taps = sizes[:6]
    shapes = ((shared, batch, length), (3 * channels, taps), (3 * channels,), (channels, long_taps))
    grads = [frame.empty(shape) for shape in shapes]
    work = _work(frame, sizes)
    called = (*arrays, mixed, work, g, *grads)
    frame.call_arrays("ember_gated_filters_adjoint", called, (*sizes, *strides))
    return grads


def _arguments(
    frame: Frame, operands: Any, mask: Any
) -> tuple[tuple[Any, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the arrays of the operands, the sizes and strides, and the shape of the result."""
    x, weight, bias, kernel = operands
    batch, shared, length = x.shape
    channels, taps = len(kernel), weight.shape[1]
    long_taps = min(length, kernel.shape[1])
    x, *strides = frame.rows(x)
    weight, bias = (frame.copy(each, tuple(each.shape)) for each in (weight, bias))
    kernel = frame.copy(kernel[:, :long_taps], (channels, long_taps))
    work = channels * batch * length * (3 * taps + long_taps // 8)
    classes = math.gcd(channels, shared)  # of channels without a common source
    sizes = (shared, channels, batch, length, taps, long_taps, classes)
    threads = min(classes, frame.threads_for(work))
    return (x, weight, bias, kernel, mask), (*sizes, threads, *strides), (channels, batch, length)


def _work(frame: Frame, sizes: tuple[int, ...]) -> Any:
    """Return memory for the threads."""
    shared, _, batch, _, _, _, classes, threads, *_ = sizes
    size = frame.size("ember_gated_filters_work", shared // classes, batch, _step(sizes))
    return frame.empty((threads, size))


def _step(sizes: tuple[int, ...]) -> int:
    """Return the number of elements of a row with the zeros between the examples."""
    return sizes[3] + sizes[4] - 1
