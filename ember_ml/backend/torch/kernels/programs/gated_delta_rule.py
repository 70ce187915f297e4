"""Programs of the delta rule, which loop over time with the state in registers.

An instance computes a block of value features of one head: the columns of the state are
independent. `scan` stores the states at the start of each chunk, from which `gradients`
recomputes the states of the chunk.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _decay(g_ptr, at, lowest, HAS_DECAY: tl.constexpr):
    """Return the decay of a step."""
    if HAS_DECAY:
        return tl.exp(tl.maximum(tl.load(g_ptr + at).to(tl.float32), lowest))
    return tl.full([], 1.0, tl.float32)


@triton.jit
def scan(
    q_ptr,
    k_ptr,
    v_ptr,
    rate_ptr,
    g_ptr,
    y_ptr,
    saved_ptr,
    length,
    chunk,
    chunks,
    keys,
    values,
    lowest,
    HAS_DECAY: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the outputs, and the state before each chunk."""
    head = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, K)
    column = tl.program_id(0) * V + tl.arange(0, V)
    known, real = lane < keys, column < values
    inside = known[:, None] & real[None, :]
    tile = lane[:, None] * values + column[None, :]
    state = tl.zeros([K, V], tl.float32)
    for part in range(chunks):
        tl.store(saved_ptr + (head * chunks + part) * keys * values + tile, state, inside)
        for step in range(part * chunk, tl.minimum(part * chunk + chunk, length)):
            at = head * length + step
            q = tl.load(q_ptr + at * keys + lane, known, 0.0).to(tl.float32)
            k = tl.load(k_ptr + at * keys + lane, known, 0.0).to(tl.float32)
            v = tl.load(v_ptr + at * values + column, real, 0.0).to(tl.float32)
            rate = tl.load(rate_ptr + at).to(tl.float32)
            state = _decay(g_ptr, at, lowest, HAS_DECAY) * state
            error = v - tl.sum(state * k[:, None], 0)
            state += (rate * k)[:, None] * error[None, :]
            tl.store(y_ptr + at * values + column, tl.sum(state * q[:, None], 0), real)


@triton.jit
def gradients(
    q_ptr,
    k_ptr,
    v_ptr,
    rate_ptr,
    g_ptr,
    dy_ptr,
    saved_ptr,
    work_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    drate_ptr,
    dg_ptr,
    length,
    chunk,
    chunks,
    keys,
    values,
    lowest,
    HAS_DECAY: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the gradient of a block of values, and the block's parts of the other gradients.

    The states of one chunk are in `work`, (heads, chunk, keys, values).
    """
    head = tl.program_id(1).to(tl.int64)
    lane = tl.arange(0, K)
    column = tl.program_id(0) * V + tl.arange(0, V)
    known, real = lane < keys, column < values
    inside = known[:, None] & real[None, :]
    tile = lane[:, None] * values + column[None, :]
    size = head * 0 + keys * values
    work_ptr += head * chunk * size
    parts = (tl.program_id(0) * tl.num_programs(1) + head) * length
    later = tl.zeros([K, V], tl.float32)
    for back in range(chunks):
        part = chunks - 1 - back
        start = part * chunk
        count = tl.minimum(chunk, length - start)
        state = tl.load(saved_ptr + (head * chunks + part) * size + tile, inside, 0.0)
        for step in range(count):
            tl.store(work_ptr + step * size + tile, state, inside)
            at = head * length + start + step
            k = tl.load(k_ptr + at * keys + lane, known, 0.0).to(tl.float32)
            v = tl.load(v_ptr + at * values + column, real, 0.0).to(tl.float32)
            rate = tl.load(rate_ptr + at).to(tl.float32)
            state = _decay(g_ptr, at, lowest, HAS_DECAY) * state
            state += (rate * k)[:, None] * (v - tl.sum(state * k[:, None], 0))[None, :]
        tl.debug_barrier()
        for step in range(count):
            t = start + count - 1 - step
            at = head * length + t
            q = tl.load(q_ptr + at * keys + lane, known, 0.0).to(tl.float32)
            k = tl.load(k_ptr + at * keys + lane, known, 0.0).to(tl.float32)
            v = tl.load(v_ptr + at * values + column, real, 0.0).to(tl.float32)
            dy = tl.load(dy_ptr + at * values + column, real, 0.0).to(tl.float32)
            rate = tl.load(rate_ptr + at).to(tl.float32)
            decay = _decay(g_ptr, at, lowest, HAS_DECAY)
            state = decay * tl.load(work_ptr + (count - 1 - step) * size + tile, inside, 0.0)
            error = v - tl.sum(state * k[:, None], 0)
            after = state + (rate * k)[:, None] * error[None, :]
            tl.store(dq_ptr + (parts + t) * keys + lane, tl.sum(after * dy[None, :], 1), known)
            later += q[:, None] * dy[None, :]
            along = tl.sum(later * k[:, None], 0)
            tl.store(drate_ptr + parts + t, tl.sum(along * error, 0))
            of_error = rate * along
            tl.store(dv_ptr + at * values + column, of_error, real)
            dk = tl.sum(rate * later * error[None, :] - state * of_error[None, :], 1)
            tl.store(dk_ptr + (parts + t) * keys + lane, dk, known)
            later -= k[:, None] * of_error[None, :]
            tl.store(dg_ptr + parts + t, tl.sum(tl.sum(later * state, 1), 0))
            later = decay * later
        tl.debug_barrier()


_TILE = {"HAS_DECAY": True, "K": 64, "V": 8}
_LOWEST = {"lowest": "fp32"}
_HALF = {f"{name}_ptr": "*bf16" for name in ("q", "k", "v", "rate", "g", "dy", "y", "dv")}
BUILDS = [
    Build(program, _TILE, types, warps)
    for types in (_LOWEST, {**_LOWEST, **_HALF})
    for program, warps in ((scan, 4), (gradients, 8))
]
