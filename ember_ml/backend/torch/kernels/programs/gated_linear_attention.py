"""Programs of linear attention with decay, which loop over time with the state in registers.

An instance computes a block of value features of one head in one segment of time. `summarize`
computes what a segment adds to the state, from which the states before all segments follow. MODE is
the kind of decay: "none", "head" (one number) or "feature" (one for each key feature).
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _decay(g_ptr, at, lane, keys, lowest, MODE: tl.constexpr):
    """Return the decay of a step, (key features, 1), and its logarithm."""
    if MODE == "feature":
        g = tl.load(g_ptr + at + lane, lane < keys, 0.0).to(tl.float32)
    elif MODE == "head":
        g = tl.load(g_ptr + at).to(tl.float32) + tl.zeros([lane.shape[0]], tl.float32)
    else:
        g = tl.zeros([lane.shape[0]], tl.float32)
    g = tl.maximum(g, lowest)
    return tl.exp(g)[:, None], g


@triton.jit
def summarize(
    x_ptr,
    z_ptr,
    g_ptr,
    state_ptr,
    total_ptr,
    heads,
    length,
    segment,
    keys,
    values,
    lowest,
    x_batch,
    x_head,
    x_time,
    z_batch,
    z_head,
    z_time,
    g_batch,
    g_head,
    g_time,
    REVERSE: tl.constexpr,
    STRICT: tl.constexpr,
    MODE: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the state after a segment from a state of zeros, and the decay over the segment.

    Forward in time, x and z are keys and values; backward, queries and gradients of outputs.
    """
    place = tl.program_id(1).to(tl.int64)
    batch, head = place // heads, place % heads
    part = tl.program_id(2)
    lane = tl.arange(0, K)
    column = tl.program_id(0) * V + tl.arange(0, V)
    x_ptr += batch * x_batch + head * x_head
    z_ptr += batch * z_batch + head * z_head
    if MODE != "none":
        g_ptr += batch * g_batch + head * g_head
    state = tl.zeros([K, V], tl.float32)
    total = tl.zeros([K], tl.float32)
    wide = tl.full([], 0, tl.int64)
    for step in range(part * segment, tl.minimum(part * segment + segment, length)):
        t = wide + step
        if REVERSE:
            t = length - 1 - t
        x = tl.load(x_ptr + t * x_time + lane, lane < keys, 0.0).to(tl.float32)
        z = tl.load(z_ptr + t * z_time + column, column < values, 0.0).to(tl.float32)
        decay, g = _decay(g_ptr, t * g_time, lane, keys, lowest, MODE)
        if REVERSE and not STRICT:
            state = decay * (state + x[:, None] * z[None, :])
        else:
            state = decay * state + x[:, None] * z[None, :]
        total += g
    at = place * tl.num_programs(2) + part
    inside = (lane < keys)[:, None] & (column < values)[None, :]
    tl.store(state_ptr + (at * keys + lane[:, None]) * values + column[None, :], state, inside)
    tl.store(total_ptr + at * keys + lane, tl.exp(total), (lane < keys) & (tl.program_id(0) == 0))


@triton.jit
def read(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    first_ptr,
    y_ptr,
    heads,
    length,
    segment,
    keys,
    values,
    lowest,
    q_batch,
    q_head,
    q_time,
    k_batch,
    k_head,
    k_time,
    v_batch,
    v_head,
    v_time,
    g_batch,
    g_head,
    g_time,
    HAS_FIRST: tl.constexpr,
    STRICT: tl.constexpr,
    MODE: tl.constexpr,
    QUERIES: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the outputs; if QUERIES, write the gradients of the queries, and q holds those of y.

    The gradients of queries are parts from a block of value features.
    """
    place = tl.program_id(1).to(tl.int64)
    batch, head = place // heads, place % heads
    part = tl.program_id(2)
    lane = tl.arange(0, K)
    column = tl.program_id(0) * V + tl.arange(0, V)
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + head * k_head
    v_ptr += batch * v_batch + head * v_head
    if MODE != "none":
        g_ptr += batch * g_batch + head * g_head
    state = tl.zeros([K, V], tl.float32)
    if HAS_FIRST:
        at = (place * tl.num_programs(2) + part) * keys + lane
        inside = (lane < keys)[:, None] & (column < values)[None, :]
        state = tl.load(first_ptr + at[:, None] * values + column[None, :], inside, 0.0)
    if QUERIES:
        y_ptr += (tl.program_id(0) * tl.num_programs(1) + place) * length * keys
    else:
        y_ptr += place * length * values
    wide = tl.full([], 0, tl.int64)
    for step in range(part * segment, tl.minimum(part * segment + segment, length)):
        t = wide + step
        k = tl.load(k_ptr + t * k_time + lane, lane < keys, 0.0).to(tl.float32)
        v = tl.load(v_ptr + t * v_time + column, column < values, 0.0).to(tl.float32)
        decay, _ = _decay(g_ptr, t * g_time, lane, keys, lowest, MODE)
        before = state
        state = decay * state + k[:, None] * v[None, :]
        seen = state
        if STRICT:
            seen = before
        if QUERIES:
            dy = tl.load(q_ptr + t * q_time + column, column < values, 0.0).to(tl.float32)
            tl.store(y_ptr + t * keys + lane, tl.sum(seen * dy[None, :], 1), lane < keys)
        else:
            q = tl.load(q_ptr + t * q_time + lane, lane < keys, 0.0).to(tl.float32)
            tl.store(y_ptr + t * values + column, tl.sum(seen * q[:, None], 0), column < values)


@triton.jit
def key_gradients(
    q_ptr,
    k_ptr,
    v_ptr,
    dy_ptr,
    g_ptr,
    first_ptr,
    dk_ptr,
    dv_ptr,
    heads,
    length,
    segment,
    keys,
    values,
    lowest,
    q_batch,
    q_head,
    q_time,
    k_batch,
    k_head,
    k_time,
    v_batch,
    v_head,
    v_time,
    dy_batch,
    dy_head,
    dy_time,
    g_batch,
    g_head,
    g_time,
    HAS_FIRST: tl.constexpr,
    STRICT: tl.constexpr,
    MODE: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the gradient of a block of values, and its part of the keys' gradient, backward."""
    place = tl.program_id(1).to(tl.int64)
    batch, head = place // heads, place % heads
    part = tl.program_id(2)
    lane = tl.arange(0, K)
    column = tl.program_id(0) * V + tl.arange(0, V)
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + head * k_head
    v_ptr += batch * v_batch + head * v_head
    dy_ptr += batch * dy_batch + head * dy_head
    if MODE != "none":
        g_ptr += batch * g_batch + head * g_head
    later = tl.zeros([K, V], tl.float32)  # gradient of the state after the step
    if HAS_FIRST:
        at = (place * tl.num_programs(2) + part) * keys + lane
        inside = (lane < keys)[:, None] & (column < values)[None, :]
        later = tl.load(first_ptr + at[:, None] * values + column[None, :], inside, 0.0)
    dk_ptr += (tl.program_id(0) * tl.num_programs(1) + place) * length * keys
    dv_ptr += place * length * values
    wide = tl.full([], 0, tl.int64)
    for step in range(part * segment, tl.minimum(part * segment + segment, length)):
        t = wide + length - 1 - step
        q = tl.load(q_ptr + t * q_time + lane, lane < keys, 0.0).to(tl.float32)
        k = tl.load(k_ptr + t * k_time + lane, lane < keys, 0.0).to(tl.float32)
        v = tl.load(v_ptr + t * v_time + column, column < values, 0.0).to(tl.float32)
        dy = tl.load(dy_ptr + t * dy_time + column, column < values, 0.0).to(tl.float32)
        decay, _ = _decay(g_ptr, t * g_time, lane, keys, lowest, MODE)
        entry = q[:, None] * dy[None, :]
        if not STRICT:
            later += entry
        tl.store(dk_ptr + t * keys + lane, tl.sum(later * v[None, :], 1), lane < keys)
        tl.store(dv_ptr + t * values + column, tl.sum(later * k[:, None], 0), column < values)
        later = decay * later
        if STRICT:
            later += entry


_TILE = {"MODE": "feature", "STRICT": True, "K": 64, "V": 16}
_FIRST = {**_TILE, "HAS_FIRST": True}
_LOWEST = {"lowest": "fp32"}
_HALF = {**_LOWEST, **{f"{name}_ptr": "*bf16" for name in ("q", "k", "v", "g", "dy", "x", "z")}}
BUILDS = [
    Build(program, {**_TILE, **constants, "MODE": mode}, types)
    for mode, types in (("feature", _LOWEST), ("feature", _HALF), ("head", _LOWEST))
    for program, constants in (
        (summarize, {"REVERSE": False}),
        (read, {**_FIRST, "QUERIES": False}),
        (read, {**_FIRST, "QUERIES": True}),
        (key_gradients, _FIRST),
    )
]
