"""Programs of the selective scan, which loop over time with the states in registers.

An instance computes a block of channels of one example. `scan` stores the states at the start of
each chunk, from which `gradients` recomputes the states of the chunk.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def scan(
    u_ptr,
    dt_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    d_ptr,
    first_ptr,
    y_ptr,
    final_ptr,
    saved_ptr,
    length,
    channels,
    states,
    chunk,
    chunks,
    u_batch,
    u_time,
    u_channel,
    dt_batch,
    dt_time,
    dt_channel,
    HAS_D: tl.constexpr,
    HAS_FIRST: tl.constexpr,
    BLOCK: tl.constexpr,
    STATES: tl.constexpr,
):
    """Write the output, the final state, and the state before each chunk."""
    row = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.arange(0, STATES)
    real, known = c < channels, n < states
    inside = real[:, None] & known[None, :]
    tile = c[:, None] * states + n[None, :]
    a = tl.load(a_ptr + tile, inside, 0.0).to(tl.float32)
    h = tl.zeros([BLOCK, STATES], tl.float32)
    if HAS_FIRST:
        h = tl.load(first_ptr + row * channels * states + tile, inside, 0.0).to(tl.float32)
    d = tl.zeros([BLOCK], tl.float32)
    if HAS_D:
        d = tl.load(d_ptr + c, real, 0.0).to(tl.float32)
    u_ptr += row * u_batch
    dt_ptr += row * dt_batch
    wide = tl.full([], 0, tl.int64)
    for part in range(chunks):
        tl.store(saved_ptr + (row * chunks + part) * channels * states + tile, h, inside)
        for step in range(part * chunk, tl.minimum(part * chunk + chunk, length)):
            t = wide + step
            u = tl.load(u_ptr + t * u_time + c * u_channel, real, 0.0).to(tl.float32)
            dt = tl.load(dt_ptr + t * dt_time + c * dt_channel, real, 0.0).to(tl.float32)
            at = (row * length + t) * states + n
            write = tl.load(b_ptr + at, known, 0.0).to(tl.float32)
            read = tl.load(c_ptr + at, known, 0.0).to(tl.float32)
            h = tl.exp(dt[:, None] * a) * h + (dt * u)[:, None] * write[None, :]
            y = tl.sum(h * read[None, :], 1) + d * u
            tl.store(y_ptr + (row * length + t) * channels + c, y, real)
    tl.store(final_ptr + row * channels * states + tile, h, inside)


@triton.jit
def gradients(
    u_ptr,
    dt_ptr,
    a_ptr,
    b_ptr,
    c_ptr,
    d_ptr,
    g_ptr,
    saved_ptr,
    work_ptr,
    grad_u_ptr,
    grad_dt_ptr,
    grad_a_ptr,
    grad_b_ptr,
    grad_c_ptr,
    grad_d_ptr,
    batch,
    length,
    channels,
    states,
    chunk,
    chunks,
    u_batch,
    u_time,
    u_channel,
    dt_batch,
    dt_time,
    dt_channel,
    g_batch,
    g_time,
    g_channel,
    HAS_D: tl.constexpr,
    BLOCK: tl.constexpr,
    STATES: tl.constexpr,
):
    """Write the gradients of u and dt, and this instance's parts of the other gradients.

    The states of one chunk are in `work`, (batch, chunk, channels, states).
    """
    row = tl.program_id(1).to(tl.int64)
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.arange(0, STATES)
    real, known = c < channels, n < states
    inside = real[:, None] & known[None, :]
    tile = c[:, None] * states + n[None, :]
    a = tl.load(a_ptr + tile, inside, 0.0).to(tl.float32)
    d = tl.zeros([BLOCK], tl.float32)
    if HAS_D:
        d = tl.load(d_ptr + c, real, 0.0).to(tl.float32)
    u_ptr += row * u_batch
    dt_ptr += row * dt_batch
    g_ptr += row * g_batch
    work_ptr += row * chunk * channels * states
    parts = (tl.program_id(0) * batch + row) * length  # of b and c: (blocks, batch, time, states)
    later = tl.zeros([BLOCK, STATES], tl.float32)
    grad_a = tl.zeros([BLOCK, STATES], tl.float32)
    grad_d = tl.zeros([BLOCK], tl.float32)
    wide = tl.full([], 0, tl.int64)
    size = wide + channels * states
    for back in range(chunks):
        part = chunks - 1 - back
        start = part * chunk
        count = tl.minimum(chunk, length - start)
        h = tl.load(saved_ptr + (row * chunks + part) * size + tile, inside, 0.0)
        for step in range(count):
            t = wide + start + step
            tl.store(work_ptr + step * size + tile, h, inside)
            u = tl.load(u_ptr + t * u_time + c * u_channel, real, 0.0).to(tl.float32)
            dt = tl.load(dt_ptr + t * dt_time + c * dt_channel, real, 0.0).to(tl.float32)
            write = tl.load(b_ptr + (row * length + t) * states + n, known, 0.0).to(tl.float32)
            h = tl.exp(dt[:, None] * a) * h + (dt * u)[:, None] * write[None, :]
        tl.debug_barrier()
        for step in range(count):
            at = count - 1 - step
            t = wide + start + at
            u = tl.load(u_ptr + t * u_time + c * u_channel, real, 0.0).to(tl.float32)
            dt = tl.load(dt_ptr + t * dt_time + c * dt_channel, real, 0.0).to(tl.float32)
            g = tl.load(g_ptr + t * g_time + c * g_channel, real, 0.0).to(tl.float32)
            write = tl.load(b_ptr + (row * length + t) * states + n, known, 0.0).to(tl.float32)
            read = tl.load(c_ptr + (row * length + t) * states + n, known, 0.0).to(tl.float32)
            before = tl.load(work_ptr + at * size + tile, inside, 0.0)
            decayed = tl.exp(dt[:, None] * a)
            later += g[:, None] * read[None, :]
            tl.store(grad_c_ptr + (parts + t) * states + n, tl.sum(g[:, None] * h, 0), known)
            entry = tl.sum(later * (dt * u)[:, None], 0)
            tl.store(grad_b_ptr + (parts + t) * states + n, entry, known)
            later_decayed = later * decayed
            exponent = later_decayed * before
            scaled = tl.sum(later * write[None, :], 1)
            place = (row * length + t) * channels
            tl.store(grad_u_ptr + place + c, scaled * dt + g * d, real)
            tl.store(grad_dt_ptr + place + c, tl.sum(exponent * a, 1) + scaled * u, real)
            grad_a += exponent * dt[:, None]
            grad_d += g * u
            later = later_decayed
            h = before
        tl.debug_barrier()
    tl.store(grad_a_ptr + row * channels * states + tile, grad_a, inside)
    tl.store(grad_d_ptr + row * channels + c, grad_d, real)


_CONSTANTS = {"HAS_D": True, "BLOCK": 32, "STATES": 16}
_HALVES = {f"{name}_ptr": "*bf16" for name in ("u", "dt", "a", "b", "c", "d")}
BUILDS = [
    Build(scan, {**_CONSTANTS, "HAS_FIRST": True}),
    Build(scan, {**_CONSTANTS, "HAS_FIRST": True}, {**_HALVES, "y_ptr": "*bf16"}),
    Build(gradients, {**_CONSTANTS, "BLOCK": 16}),
    Build(
        gradients,
        {**_CONSTANTS, "BLOCK": 16},
        {**_HALVES, "g_ptr": "*bf16", "grad_u_ptr": "*bf16", "grad_dt_ptr": "*bf16"},
    ),
]
