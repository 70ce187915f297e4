"""Hyena's gated long convolution, with C kernels for its short filters and gates."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ember_ml._native.frame import Frame
from ember_ml.backend import native_gated_filters
from ember_ml.backend.native_gate_parts import GateParts
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.long_convolution import is_direct, method
from ember_ml.backend.numpy.native import frame


def _is_served(x: Any, weight: Any, bias: Any, kernel: Any, mask: Any, *others: Any) -> bool:
    if not native.is_served(x, weight, bias, kernel, *others):
        return False
    if [x.ndim, weight.ndim, kernel.ndim] != [3, 2, 2]:
        return False
    filters = 3 * len(kernel)
    return (
        kernel.size > 0
        and weight.size > 0
        and (len(weight),) == bias.shape == (filters,)
        and filters % x.shape[1] == 0
        and (mask is None or (mask.dtype == bool and mask.shape == x.shape[::2]))
    )


def channels_first(x: np.ndarray) -> np.ndarray:
    """Return (batch, channels, time) as (channels, batch, time), contiguous."""
    return np.ascontiguousarray(x.transpose(1, 0, 2))


def gated_long_conv(x, weight, bias, kernel, mask=None):
    if not _is_served(x, weight, bias, kernel, mask):
        return None
    operands = (x, weight, bias, kernel)
    access, mask = _access(operands, mask)
    if is_direct(x.shape[2]):
        out, _ = native_gated_filters.forward(access, operands, mask, keep=False)
        return out.transpose(1, 0, 2)
    query, joined = GateParts(access, x, weight, bias, mask).run()
    query *= method(kernel, x.shape[2]).convolve(joined)
    return query.transpose(1, 0, 2)


def gated_long_conv_adjoint(g, x, weight, bias, kernel, mask=None):
    """Return the gradients of x, weight, bias and kernel; None if the kernels do not take them."""
    if not _is_served(x, weight, bias, kernel, mask, g):
        return None
    if g.shape != (len(x), len(kernel), x.shape[2]):
        return None
    operands = (x, weight, bias, kernel)
    access, mask = _access((g, *operands), mask)
    if is_direct(x.shape[2]):
        into, *grads, taps = native_gated_filters.adjoint(access, operands, mask, None, g)
        return into.transpose(1, 0, 2), *grads, _padded(taps, kernel)
    parts, g = GateParts(access, x, weight, bias, mask), channels_first(g)
    query, joined = parts.run()
    way = method(kernel, x.shape[2])
    of_query = way.convolve(joined)
    of_query *= g
    query *= g
    of_joined, of_taps = way.pull(joined, query)
    of_x, of_weight, of_bias = parts.pull(of_query, of_joined)
    return of_x.transpose(1, 0, 2), of_weight, of_bias, _padded(of_taps, kernel)


def _access(operands: Any, mask: Any) -> tuple[Frame, Any]:
    """Return the access to operands that the kernels take, and the mask as they read it."""
    return cast("Frame", frame(*operands)), None if mask is None else np.ascontiguousarray(mask)


def _padded(of_taps: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return the gradient of the kernel; taps after the last position have none."""
    of_kernel = np.zeros_like(kernel)
    of_kernel[:, : of_taps.shape[1]] = of_taps
    return of_kernel


def _has_filters(x: Any, kernel: Any, *others: Any) -> bool:
    return (
        native.is_served(x, kernel, *others)
        and (x.ndim, kernel.ndim) == (3, 2)
        and len(kernel) == x.shape[1]
        and kernel.size > 0
    )


def long_conv(x, kernel):
    if not _has_filters(x, kernel):
        return None
    mixed = method(kernel, x.shape[2]).convolve(x.transpose(1, 0, 2))
    return mixed.transpose(1, 0, 2)


def long_conv_adjoint(g, x, kernel):
    """Return the gradients of x and kernel; None if the kernels do not take them."""
    if not _has_filters(x, kernel, g) or g.shape != x.shape:
        return None
    way = method(kernel, x.shape[2])
    into, of_taps = way.pull(x.transpose(1, 0, 2), g.transpose(1, 0, 2))
    return into.transpose(1, 0, 2), _padded(of_taps, kernel)
