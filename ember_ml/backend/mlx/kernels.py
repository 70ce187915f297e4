"""Metal kernels of the MLX backend.

A thread walks through time for one lane of a linear recurrence, or one channel of a selective scan.
Gradients are those of plain ops, in which linear recurrences use the kernel again.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import mlx.core as mx

LINEAR_RECURRENCE = """
    uint lane = thread_position_in_grid.x;
    uint lanes = sizes[0], inner = sizes[1], length = sizes[2];
    if (lane >= lanes) return;
    size_t start = size_t(lane / inner) * length * inner + lane % inner;
    float state = h0[lane];
    for (uint step = 0; step < length; ++step) {
        uint t = REVERSE ? length - 1 - step : step;
        size_t at = start + size_t(t) * inner;
        state = a[at] * state + b[at];
        h[at] = state;
    }
"""
"""Body of the kernel; a, b and h are (outer, time, inner)."""

SELECTIVE_SCAN = """
    uint lane = thread_position_in_grid.x;
    uint batch = sizes[0], length = sizes[1], channels = sizes[2];
    if (lane >= batch * channels) return;
    uint row = lane / channels, channel = lane % channels;
    float state[STATES], rate[STATES];
    for (uint n = 0; n < STATES; ++n) {
        state[n] = 0.0f;
        rate[n] = a[channel * STATES + n];
    }
    for (uint t = 0; t < length; ++t) {
        size_t position = size_t(row) * length + t;
        size_t at = position * channels + channel;
        float step = dt[at], entry = step * u[at], total = 0.0f;
        for (uint n = 0; n < STATES; ++n) {
            float decay = metal::exp(step * rate[n]);
            state[n] = decay * state[n] + entry * b[position * STATES + n];
            total += state[n] * c[position * STATES + n];
        }
        y[at] = total + d[channel] * u[at];
    }
"""
"""Body of the kernel; u, dt and y are (batch, time, channels)."""

MAX_STATES = 64
_THREADS = 256


def in_use() -> bool:
    """Return whether MLX computes on a Metal device."""
    return mx.metal.is_available() and mx.default_device().type == mx.DeviceType.gpu


@functools.cache
def _kernel(name: str, inputs: tuple[str, ...], output: str, source: str) -> Any:
    return mx.fast.metal_kernel(
        name=f"ember_ml_{name}", input_names=list(inputs), output_names=[output], source=source
    )


def linear_recurrence(a: mx.array, b: mx.array, h0: mx.array, axis: int, reverse: bool) -> mx.array:
    """Return the states of a linear recurrence.

    Args:
        a: Factors, float32.
        b: Inputs, in the shape of a.
        h0: State before the first step.
        axis: Time axis.
        reverse: Whether time runs backward.
    """
    inner = math.prod(b.shape[axis + 1 :])
    sizes = mx.array([h0.size, inner, b.shape[axis]], mx.uint32)
    kernel = _kernel("linear_recurrence", ("a", "b", "h0", "sizes"), "h", LINEAR_RECURRENCE)
    template = [("REVERSE", reverse)]
    return _launch(kernel, [a, b, h0, sizes], template, h0.size, b)


def selective_scan(
    u: mx.array, dt: mx.array, a: mx.array, b: mx.array, c: mx.array, d: mx.array
) -> mx.array:
    """Return the output of a selective scan, float32.

    Args:
        u: Input, (batch, time, channels).
        dt: Step sizes, in the shape of u.
        a: Decay rates, (channels, states).
        b: Input projection, (batch, time, states).
        c: Output projection, in the shape of b.
        d: Skip connection, (channels,).
    """
    names = ("u", "dt", "a", "b", "c", "d", "sizes")
    kernel = _kernel("selective_scan", names, "y", SELECTIVE_SCAN)
    sizes = mx.array(u.shape, mx.uint32)
    template = [("STATES", a.shape[1])]
    lanes = u.shape[0] * u.shape[2]
    return _launch(kernel, [u, dt, a, b, c, d, sizes], template, lanes, u)


def _launch(kernel: Any, inputs: Any, template: Any, lanes: int, like: mx.array) -> mx.array:
    return kernel(
        inputs=inputs,
        template=template,
        grid=(lanes, 1, 1),
        threadgroup=(min(_THREADS, lanes), 1, 1),
        output_shapes=[like.shape],
        output_dtypes=[like.dtype],
    )[0]
