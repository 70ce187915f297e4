"""Arguments of the C kernels of short causal filters, of arrays with contiguous channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ember_ml._native.frame import Frame

MOST_TAPS = 16
"""Largest number of taps of the kernels."""


def fits(strides: Sequence[int], taps: int) -> bool:
    """Return whether an array (batch, channels, time) has contiguous channels, and few taps.

    Args:
        strides: Strides of the array, in elements.
        taps: Number of taps.
    """
    return strides[1] == 1 != strides[2] and taps <= MOST_TAPS


def forward(frame: Frame, x: Any, weight: Any, bias: Any, silu: bool) -> Any:
    """Return the filtered x, (batch, channels, time), with contiguous channels.

    Args:
        frame: Access to the arrays.
        x: (batch, channels, time), not empty.
        weight: (channels, taps), with at most `MOST_TAPS` taps.
        bias: (channels,), or None.
        silu: Whether SiLU follows.
    """
    rows, *strides = frame.rows(x.swapaxes(1, 2))
    operands, sizes = _operands(frame, x, weight, bias)
    out = frame.empty((sizes[0], sizes[2], sizes[1]))
    threads = _threads(frame, sizes, 1)
    frame.call_arrays(
        "ember_causal_columns", (rows, *operands, out), (*sizes, *strides, int(silu), threads)
    )
    return out.swapaxes(1, 2)


def adjoint(frame: Frame, g: Any, x: Any, weight: Any, bias: Any, silu: bool) -> tuple[Any, ...]:
    """Return the gradients of x, weight and bias, also for a bias of None.

    Args:
        frame: Access to the arrays.
        g: Gradient of the result of `forward`.
        x: (batch, channels, time), not empty.
        weight: (channels, taps).
        bias: (channels,), or None. Without SiLU, it is not used.
        silu: Whether SiLU follows.
    """
    rows, *strides = frame.rows(x.swapaxes(1, 2))
    of_out, *of_strides = frame.rows(g.swapaxes(1, 2))
    operands, sizes = _operands(frame, x, weight, bias)
    batch, channels, length, taps = sizes
    of_x, of_weight = frame.empty((batch, length, channels)), frame.empty((taps, channels))
    of_bias = frame.empty((channels,))
    frame.call_arrays(
        "ember_causal_columns_adjoint",
        (of_out, rows, *operands, of_x, of_weight, of_bias),
        (*sizes, *strides, *of_strides, int(silu), _threads(frame, sizes, 2)),
    )
    return of_x.swapaxes(1, 2), of_weight.swapaxes(0, 1), of_bias


def _operands(frame: Frame, x: Any, weight: Any, bias: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the weight, (taps, channels), the bias, and batch, channels, length and taps."""
    channels, taps = weight.shape
    taps_first = frame.copy(weight.swapaxes(0, 1), (taps, channels))
    bias = None if bias is None else frame.copy(bias, (channels,))
    return [taps_first, bias], (x.shape[0], channels, x.shape[2], taps)


def _threads(frame: Frame, sizes: Sequence[int], cost: int) -> int:
    batch, channels, length, taps = sizes
    return min(channels, frame.threads_for(cost * batch * channels * length * taps))
