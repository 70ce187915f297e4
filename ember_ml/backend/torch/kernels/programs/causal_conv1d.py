"""Programs of the short causal convolution of single channels, with or without SiLU.

An instance computes a tile of time and channels of one example, (T, C).
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _filtered(
    x_ptr, weight_ptr, bias_ptr, t, c, length, channels, x_time, x_channel, HAS_BIAS, TAPS
):
    """Return the convolution of a tile."""
    real = (c < channels)[None, :]
    out = tl.zeros([t.shape[0], c.shape[0]], tl.float32)
    if HAS_BIAS:
        out += tl.load(bias_ptr + c, c < channels, 0.0).to(tl.float32)[None, :]
    for tap in tl.static_range(TAPS):
        source = (t - (TAPS - 1 - tap))[:, None]
        inside = real & (source >= 0) & (source < length)
        x = tl.load(x_ptr + source * x_time + c[None, :] * x_channel, inside, 0.0).to(tl.float32)
        w = tl.load(weight_ptr + c * TAPS + tap, c < channels, 0.0).to(tl.float32)
        out += x * w[None, :]
    return out


@triton.jit
def convolve(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    length,
    channels,
    x_batch,
    x_channel,
    x_time,
    y_batch,
    y_channel,
    y_time,
    HAS_BIAS: tl.constexpr,
    SILU: tl.constexpr,
    TAPS: tl.constexpr,
    T: tl.constexpr,
    C: tl.constexpr,
):
    """Write the output of a tile."""
    row = tl.program_id(2).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * T + tl.arange(0, T)
    c = tl.program_id(0).to(tl.int64) * C + tl.arange(0, C)
    x_ptr += row * x_batch
    y = _filtered(
        x_ptr, weight_ptr, bias_ptr, t, c, length, channels, x_time, x_channel, HAS_BIAS, TAPS
    )
    if SILU:
        y = y * tl.sigmoid(y)
    inside = (t < length)[:, None] & (c < channels)[None, :]
    tl.store(y_ptr + row * y_batch + t[:, None] * y_time + c[None, :] * y_channel, y, inside)


@triton.jit
def filter_gradients(
    x_ptr,
    weight_ptr,
    bias_ptr,
    g_ptr,
    inner_ptr,
    grad_weight_ptr,
    grad_bias_ptr,
    length,
    channels,
    x_batch,
    x_channel,
    x_time,
    g_batch,
    g_channel,
    g_time,
    HAS_BIAS: tl.constexpr,
    SILU: tl.constexpr,
    TAPS: tl.constexpr,
    T: tl.constexpr,
    C: tl.constexpr,
):
    """Write the tile's parts of the gradients of weight and bias, and the gradient before SiLU."""
    row = tl.program_id(2).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * T + tl.arange(0, T)
    c = tl.program_id(0).to(tl.int64) * C + tl.arange(0, C)
    real = c < channels
    inside = (t < length)[:, None] & real[None, :]
    x_ptr += row * x_batch
    at = row * g_batch + t[:, None] * g_time + c[None, :] * g_channel
    g = tl.load(g_ptr + at, inside, 0.0).to(tl.float32)
    if SILU:
        y = _filtered(
            x_ptr, weight_ptr, bias_ptr, t, c, length, channels, x_time, x_channel, HAS_BIAS, TAPS
        )
        s = tl.sigmoid(y)
        g = g * s * (1.0 + y * (1.0 - s))
        inner = (row * length + t[:, None]) * channels + c[None, :]
        tl.store(inner_ptr + inner, g, inside)
    part = (row * tl.num_programs(1) + tl.program_id(1)) * channels + c
    tl.store(grad_bias_ptr + part, tl.sum(g, 0), real)
    for tap in tl.static_range(TAPS):
        source = (t - (TAPS - 1 - tap))[:, None]
        place = source * x_time + c[None, :] * x_channel
        x = tl.load(x_ptr + place, inside & (source >= 0), 0.0).to(tl.float32)
        tl.store(grad_weight_ptr + part * TAPS + tap, tl.sum(g * x, 0), real)


@triton.jit
def input_gradients(
    g_ptr,
    weight_ptr,
    grad_ptr,
    length,
    channels,
    g_batch,
    g_channel,
    g_time,
    x_batch,
    x_channel,
    x_time,
    TAPS: tl.constexpr,
    T: tl.constexpr,
    C: tl.constexpr,
):
    """Write the gradient of x of a tile, from the gradient before SiLU."""
    row = tl.program_id(2).to(tl.int64)
    t = tl.program_id(1).to(tl.int64) * T + tl.arange(0, T)
    c = tl.program_id(0).to(tl.int64) * C + tl.arange(0, C)
    real = c < channels
    g_ptr += row * g_batch
    out = tl.zeros([T, C], tl.float32)
    for tap in tl.static_range(TAPS):
        target = (t + (TAPS - 1 - tap))[:, None]
        inside = real[None, :] & (target < length)
        g = tl.load(g_ptr + target * g_time + c[None, :] * g_channel, inside, 0.0).to(tl.float32)
        w = tl.load(weight_ptr + c * TAPS + tap, real, 0.0).to(tl.float32)
        out += g * w[None, :]
    inside = (t < length)[:, None] & real[None, :]
    at = row * x_batch + t[:, None] * x_time + c[None, :] * x_channel
    tl.store(grad_ptr + at, out, inside)


_CONSTANTS = {"HAS_BIAS": True, "SILU": True, "TAPS": 4, "T": 32, "C": 32}
_TILE = {"TAPS": 4, "T": 32, "C": 32}
_HALF = {f"{name}_ptr": "*bf16" for name in ("x", "weight", "bias", "y", "g", "grad")}
BUILDS = [
    Build(program, constants, types)
    for types in ({}, _HALF)
    for program, constants in (
        (convolve, _CONSTANTS),
        (filter_gradients, _CONSTANTS),
        (input_gradients, _TILE),
    )
]
