"""Programs of the linear recurrence h_t = a_t h_{t-1} + b_t, over lanes of independent elements.

Time is split into chunks. `summarize` reduces each chunk to a factor and a state, `carry` computes
the state before each chunk, and `states` or `gradients` walk through the chunks in parallel.

Lane l is the element (l // inner, time, l % inner) of arrays (outer, time, inner).
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _start(axis: tl.constexpr, lanes, inner, stride_outer, stride_inner, BLOCK: tl.constexpr):
    """Return the lanes of this instance, where they exist, and their offsets in an array."""
    lane = tl.program_id(axis).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    return lane, lane < lanes, lane // inner * stride_outer + lane % inner * stride_inner


@triton.jit
def summarize(
    a_ptr,
    b_ptr,
    factor_ptr,
    state_ptr,
    lanes,
    inner,
    length,
    chunk,
    a_outer,
    a_time,
    a_inner,
    b_outer,
    b_time,
    b_inner,
    REVERSE: tl.constexpr,
    SHIFTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the product of each chunk's factors, and its last state from a state of zeros."""
    lane, real, at_a = _start(0, lanes, inner, a_outer, a_inner, BLOCK)
    _, _, at_b = _start(0, lanes, inner, b_outer, b_inner, BLOCK)
    part = tl.program_id(1)
    wide = tl.full([], 0, tl.int64)  # offsets exceed 32 bits
    factor = tl.full([BLOCK], 1.0, tl.float32)
    state = tl.zeros([BLOCK], tl.float32)
    for step in range(part * chunk, tl.minimum(part * chunk + chunk, length)):
        t = wide + step
        if REVERSE:
            t = length - 1 - t
        a = tl.load(a_ptr + at_a + t * a_time, real, 0.0).to(tl.float32)
        b = tl.load(b_ptr + at_b + t * b_time, real, 0.0).to(tl.float32)
        factor = a * factor
        if SHIFTED:
            state = a * (state + b)
        else:
            state = a * state + b
    at = part.to(tl.int64) * lanes + lane
    tl.store(factor_ptr + at, factor, real)
    tl.store(state_ptr + at, state, real)


@triton.jit
def carry(
    factor_ptr, state_ptr, first_ptr, lanes, chunks, HAS_FIRST: tl.constexpr, BLOCK: tl.constexpr
):
    """Replace the last state of each chunk by the state before it."""
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = lane < lanes
    state = tl.zeros([BLOCK], tl.float32)
    if HAS_FIRST:
        state = tl.load(first_ptr + lane, real, 0.0).to(tl.float32)
    wide = tl.full([], 0, tl.int64)
    for part in range(chunks):
        at = (wide + part) * lanes + lane
        factor = tl.load(factor_ptr + at, real, 0.0)
        last = tl.load(state_ptr + at, real, 0.0)
        tl.store(state_ptr + at, state, real)
        # a factor that overflows does not turn a state of zero into NaN
        state = tl.where(state == 0.0, last, factor * state + last)


@triton.jit
def states(
    a_ptr,
    b_ptr,
    first_ptr,
    h_ptr,
    final_ptr,
    lanes,
    inner,
    length,
    chunk,
    a_outer,
    a_time,
    a_inner,
    b_outer,
    b_time,
    b_inner,
    REVERSE: tl.constexpr,
    HAS_FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the states of a chunk, and the final state after the last chunk."""
    lane, real, at_a = _start(0, lanes, inner, a_outer, a_inner, BLOCK)
    _, _, at_b = _start(0, lanes, inner, b_outer, b_inner, BLOCK)
    at_h = lane // inner * length * inner + lane % inner
    part = tl.program_id(1)
    wide = tl.full([], 0, tl.int64)  # offsets exceed 32 bits
    state = tl.zeros([BLOCK], tl.float32)
    if HAS_FIRST:
        state = tl.load(first_ptr + part.to(tl.int64) * lanes + lane, real, 0.0).to(tl.float32)
    end = tl.minimum(part * chunk + chunk, length)
    for step in range(part * chunk, end):
        t = wide + step
        if REVERSE:
            t = length - 1 - t
        a = tl.load(a_ptr + at_a + t * a_time, real, 0.0).to(tl.float32)
        b = tl.load(b_ptr + at_b + t * b_time, real, 0.0).to(tl.float32)
        state = a * state + b
        tl.store(h_ptr + at_h + t * inner, state, real)
    tl.store(final_ptr + lane, state, real & (end == length))


@triton.jit
def gradients(
    a_ptr,
    g_ptr,
    h_ptr,
    h0_ptr,
    first_ptr,
    grad_a_ptr,
    grad_b_ptr,
    grad_h0_ptr,
    lanes,
    inner,
    length,
    chunk,
    a_outer,
    a_time,
    a_inner,
    g_outer,
    g_time,
    g_inner,
    REVERSE: tl.constexpr,
    HAS_H0: tl.constexpr,
    HAS_FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the gradients of a, b and h0, walking against the direction of the recurrence."""
    lane, real, at_a = _start(0, lanes, inner, a_outer, a_inner, BLOCK)
    _, _, at_g = _start(0, lanes, inner, g_outer, g_inner, BLOCK)
    at_h = lane // inner * length * inner + lane % inner
    part = tl.program_id(1)
    wide = tl.full([], 0, tl.int64)  # offsets exceed 32 bits
    later = tl.zeros([BLOCK], tl.float32)
    if HAS_FIRST:
        later = tl.load(first_ptr + part.to(tl.int64) * lanes + lane, real, 0.0).to(tl.float32)
    h0 = tl.zeros([BLOCK], tl.float32)
    if HAS_H0:
        h0 = tl.load(h0_ptr + lane, real, 0.0).to(tl.float32)
    end = tl.minimum(part * chunk + chunk, length)
    for step in range(part * chunk, end):
        back = wide + length - 1 - step  # steps before this one in the recurrence
        t = back
        before = t - 1
        if REVERSE:
            t = length - 1 - back
            before = t + 1
        a = tl.load(a_ptr + at_a + t * a_time, real, 0.0).to(tl.float32)
        g = tl.load(g_ptr + at_g + t * g_time, real, 0.0).to(tl.float32) + later
        h = tl.load(h_ptr + at_h + before * inner, real & (back > 0), 0.0).to(tl.float32)
        h = tl.where(back > 0, h, h0)
        tl.store(grad_a_ptr + at_h + t * inner, g * h, real)
        tl.store(grad_b_ptr + at_h + t * inner, g, real)
        later = a * g
    tl.store(grad_h0_ptr + lane, later, real & (end == length))


_FORWARD = {"REVERSE": False, "HAS_FIRST": True, "BLOCK": 64}
_BACKWARD = {"REVERSE": False, "HAS_FIRST": True, "HAS_H0": True, "BLOCK": 64}
_HALF = {"a_ptr": "*bf16", "b_ptr": "*bf16", "h_ptr": "*bf16"}
_HALF_GRADS = {"g_ptr": "*bf16", "grad_a_ptr": "*bf16", "grad_b_ptr": "*bf16"}
BUILDS = [
    Build(summarize, {"REVERSE": False, "SHIFTED": False, "BLOCK": 64}, warps=2),
    Build(carry, {"HAS_FIRST": True, "BLOCK": 64}, warps=2),
    Build(states, _FORWARD, warps=2),
    Build(states, _FORWARD, _HALF, warps=2),
    Build(gradients, _BACKWARD, warps=2),
    Build(gradients, _BACKWARD, {"a_ptr": "*bf16", "h_ptr": "*bf16", **_HALF_GRADS}, warps=2),
]
