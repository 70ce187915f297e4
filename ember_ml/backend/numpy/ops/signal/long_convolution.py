"""Hyena's gated long convolution, with C kernels for its short filters and gates."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ember_ml._native.calls import SUFFIXES, Kernel, threads_for
from ember_ml._native.frame import Frame
from ember_ml.backend import native_gated_filters
from ember_ml.backend.numpy import kernel_calls as native
from ember_ml.backend.numpy.long_convolution import is_direct, method
from ember_ml.backend.numpy.native import frame

_PARTS = Kernel("gate_parts", "pppppppiiiiii")
_ADJOINT = Kernel("gate_parts_adjoint", "ppppppppppiiiiii")


def _is_served(x: Any, weight: Any, bias: Any, kernel: Any, mask: Any) -> bool:
    if not native.is_served(x, weight, bias, kernel) or (x.ndim, weight.ndim, kernel.ndim) != (
        3,
        2,
        2,
    ):
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


class _Gates:
    """Query and joined values of the operator, and the gradients of what they are filtered from."""

    def __init__(self, x: Any, weight: Any, bias: Any, kernel: Any, mask: Any) -> None:
        batch, shared, length = x.shape
        taps = weight.shape[1]
        self.x = np.zeros((shared, batch, taps - 1 + length), x.dtype)  # as the kernels read it
        self.x[..., taps - 1 :] = x.transpose(1, 0, 2)
        self.weight, self.bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
        self.mask = None if mask is None else np.ascontiguousarray(mask)
        self.threads = min(threads_for(3 * len(kernel) * batch * length * taps), shared)
        self.sizes = (shared, len(kernel), batch, length, taps)
        self.rows = np.empty((self.threads, 3, *self.x.shape[1:]), x.dtype)
        self.inputs = [native.address(a) for a in (self.x, self.weight, self.bias, self.mask)]

    def run(self) -> tuple[np.ndarray, np.ndarray]:
        query, joined = np.empty((2, *self.sizes[1:4]), self.x.dtype)
        outputs = [native.address(a) for a in (query, joined, self.rows)]
        _PARTS(SUFFIXES[self.x.dtype.char], *self.inputs, *outputs, *self.sizes, self.threads)
        return query, joined

    def pull(self, of_query: np.ndarray, of_joined: np.ndarray) -> tuple[np.ndarray, ...]:
        shared, _, batch, length, _ = self.sizes
        of_x = np.empty((shared, batch, length), self.x.dtype)
        grads = of_x, np.empty_like(self.weight), np.empty_like(self.bias)
        arrays = (np.ascontiguousarray(of_query), np.ascontiguousarray(of_joined), *grads)
        addresses = [native.address(a) for a in (*arrays, self.rows)]
        _ADJOINT(SUFFIXES[self.x.dtype.char], *self.inputs, *addresses, *self.sizes, self.threads)
        return grads


def gated_long_conv(x, weight, bias, kernel, mask=None):
    if not _is_served(x, weight, bias, kernel, mask):
        return None
    operands = (x, weight, bias, kernel)
    if is_direct(x.shape[2]):
        access, mask = _access(operands, mask)
        out, _ = native_gated_filters.forward(access, operands, mask, keep=False)
        return out.transpose(1, 0, 2)
    query, joined = _Gates(*operands, mask).run()
    query *= method(kernel, x.shape[2]).convolve(joined)
    return query.transpose(1, 0, 2)


def gated_long_conv_adjoint(g, x, weight, bias, kernel, mask=None):
    """Return the gradients of x, weight, bias and kernel; None if the kernels do not serve."""
    if not _is_served(x, weight, bias, kernel, mask):
        return None
    if g.dtype != x.dtype or g.shape != (len(x), len(kernel), x.shape[2]):
        return None
    operands = (x, weight, bias, kernel)
    if is_direct(x.shape[2]):
        access, mask = _access((g, *operands), mask)
        into, *grads, taps = native_gated_filters.adjoint(access, operands, mask, None, g)
        return into.transpose(1, 0, 2), *grads, _padded(taps, kernel)
    gates, g = _Gates(*operands, mask), channels_first(g)
    query, joined = gates.run()
    way = method(kernel, x.shape[2])
    of_query = way.convolve(joined)
    of_query *= g
    query *= g
    of_joined, of_taps = way.pull(joined, query)
    of_x, of_weight, of_bias = gates.pull(of_query, of_joined)
    return of_x.transpose(1, 0, 2), of_weight, of_bias, _padded(of_taps, kernel)


def _access(operands: Any, mask: Any) -> tuple[Frame, Any]:
    """Return the access to operands that the kernels serve, and the mask as they read it."""
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
    """Return the gradients of x and kernel; None if the kernels do not serve."""
    if not _has_filters(x, kernel, g) or g.shape != x.shape:
        return None
    way = method(kernel, x.shape[2])
    into, of_taps = way.pull(x.transpose(1, 0, 2), g.transpose(1, 0, 2))
    return into.transpose(1, 0, 2), _padded(of_taps, kernel)
