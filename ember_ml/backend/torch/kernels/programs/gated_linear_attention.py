"""Programs of linear attention with decay, which walk through chunks with the state in registers.

An instance computes a block of value features of one head. MODE is the kind of decay: "none",
"head" (one number) or "feature" (one for each key feature). All exponents are at most 0.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _rows(x_ptr, t, lane, length, size, stride):
    """Return some positions of an array, (positions, features)."""
    inside = (t < length)[:, None] & (lane < size)[None, :]
    return tl.load(x_ptr + t[:, None] * stride + lane[None, :], inside, 0.0).to(tl.float32)


@triton.jit
def _decays(g_ptr, t, lane, length, size, stride, lowest, STRICT: tl.constexpr, MODE: tl.constexpr):
    """Return the log decays from the chunk's start to keys and to queries, and over the chunk.

    Each is (positions, key features) or (positions, 1), and the last (1, same).
    """
    if MODE == "feature":
        g = _rows(g_ptr, t, lane, length, size, stride)
    elif MODE == "head":
        g = tl.load(g_ptr + t * stride, t < length, 0.0).to(tl.float32)[:, None]
    else:
        g = tl.zeros([t.shape[0], 1], tl.float32)
    g = tl.maximum(g, lowest)
    total = tl.cumsum(g, 0)
    before = total
    if STRICT:
        before = total - g
    return total, before, tl.sum(g, 0)[None, :]


@triton.jit
def _row(x, at, row):
    """Return one row of a matrix in registers, (1, columns)."""
    return tl.sum(tl.where(row[:, None] == at, x, 0.0), 0)[None, :]


@triton.jit
def _visible(row, STRICT: tl.constexpr):
    """Return where a query (row) reads a key (column)."""
    if STRICT:
        return row[:, None] > row[None, :]
    return row[:, None] >= row[None, :]


@triton.jit
def _scores(
    q, k, total, before, row, STRICT: tl.constexpr, MODE: tl.constexpr, PRECISION: tl.constexpr
):
    """Return the decayed products of queries and keys of a chunk, zero for later keys."""
    visible = _visible(row, STRICT)
    if MODE == "feature":
        out = tl.zeros([row.shape[0], row.shape[0]], tl.float32)
        for at in range(row.shape[0]):
            decay = tl.exp(tl.minimum(_row(before, at, row) - total, 0.0))
            products = tl.sum(_row(q, at, row) * k * decay, 1)
            out = tl.where(row[:, None] == at, products[None, :], out)
    else:
        decay = tl.exp(tl.minimum(before - tl.trans(total), 0.0))
        out = tl.dot(q, tl.trans(k), input_precision=PRECISION) * decay
    return tl.where(visible, out, 0.0)


@triton.jit
def attend(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    y_ptr,
    heads,
    length,
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
    STRICT: tl.constexpr,
    MODE: tl.constexpr,
    PRECISION: tl.constexpr,
    C: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the outputs of a block of value features."""
    place = tl.program_id(1).to(tl.int64)
    batch, head = place // heads, place % heads
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + head * k_head
    v_ptr += batch * v_batch + head * v_head + tl.program_id(0) * V
    if MODE != "none":
        g_ptr += batch * g_batch + head * g_head
    y_ptr += place * length * values + tl.program_id(0) * V
    row, lane, column = tl.arange(0, C), tl.arange(0, K), tl.arange(0, V)
    width = values - tl.program_id(0) * V
    state = tl.zeros([K, V], tl.float32)
    for start in range(0, length, C):
        t = start + row
        q = _rows(q_ptr, t, lane, length, keys, q_time)
        k = _rows(k_ptr, t, lane, length, keys, k_time)
        v = _rows(v_ptr, t, column, length, width, v_time)
        total, before, last = _decays(g_ptr, t, lane, length, keys, g_time, lowest, STRICT, MODE)
        scores = _scores(q, k, total, before, row, STRICT, MODE, PRECISION)
        y = tl.dot(scores, v, input_precision=PRECISION)
        y += tl.dot(q * tl.exp(before), state, input_precision=PRECISION)
        inside = (t < length)[:, None] & (column < width)[None, :]
        tl.store(y_ptr + t[:, None] * values + column[None, :], y, inside)
        update = tl.dot(tl.trans(k * tl.exp(last - total)), v, input_precision=PRECISION)
        state = tl.trans(tl.exp(last)) * state + update


@triton.jit
def query_gradients(
    k_ptr,
    v_ptr,
    g_ptr,
    dy_ptr,
    dq_ptr,
    heads,
    length,
    keys,
    values,
    lowest,
    k_batch,
    k_head,
    k_time,
    v_batch,
    v_head,
    v_time,
    g_batch,
    g_head,
    g_time,
    STRICT: tl.constexpr,
    MODE: tl.constexpr,
    PRECISION: tl.constexpr,
    C: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the part of the gradient of the queries from a block of value features."""
    place = tl.program_id(1).to(tl.int64)
    batch, head = place // heads, place % heads
    k_ptr += batch * k_batch + head * k_head
    v_ptr += batch * v_batch + head * v_head + tl.program_id(0) * V
    if MODE != "none":
        g_ptr += batch * g_batch + head * g_head
    dy_ptr += place * length * values + tl.program_id(0) * V
    dq_ptr += (tl.program_id(0) * tl.num_programs(1) + place) * length * keys
    row, lane, column = tl.arange(0, C), tl.arange(0, K), tl.arange(0, V)
    width = values - tl.program_id(0) * V
    state = tl.zeros([K, V], tl.float32)
    for start in range(0, length, C):
        t = start + row
        k = _rows(k_ptr, t, lane, length, keys, k_time)
        v = _rows(v_ptr, t, column, length, width, v_time)
        dy = _rows(dy_ptr, t, column, length, width, values)
        total, before, last = _decays(g_ptr, t, lane, length, keys, g_time, lowest, STRICT, MODE)
        weights = tl.dot(dy, tl.trans(v), input_precision=PRECISION)
        weights = tl.where(_visible(row, STRICT), weights, 0.0)
        dq = tl.dot(dy, tl.trans(state), input_precision=PRECISION) * tl.exp(before)
        if MODE == "feature":
            for at in range(C):
                decay = tl.exp(tl.minimum(_row(before, at, row) - total, 0.0))
                own = tl.sum(tl.trans(_row(weights, at, row)) * k * decay, 0)
                dq += tl.where(row[:, None] == at, own[None, :], 0.0)
        else:
            decay = tl.exp(tl.minimum(before - tl.trans(total), 0.0))
            dq += tl.dot(weights * decay, k, input_precision=PRECISION)
        inside = (t < length)[:, None] & (lane < keys)[None, :]
        tl.store(dq_ptr + t[:, None] * keys + lane[None, :], dq, inside)
        update = tl.dot(tl.trans(k * tl.exp(last - total)), v, input_precision=PRECISION)
        state = tl.trans(tl.exp(last)) * state + update


@triton.jit
def key_gradients(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    dy_ptr,
    dk_ptr,
    dv_ptr,
    heads,
    length,
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
    STRICT: tl.constexpr,
    MODE: tl.constexpr,
    PRECISION: tl.constexpr,
    C: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
):
    """Write the gradient of a block of values, and its part of that of the keys, backward."""
    place = tl.program_id(1).to(tl.int64)
    batch, head = place // heads, place % heads
    q_ptr += batch * q_batch + head * q_head
    k_ptr += batch * k_batch + head * k_head
    v_ptr += batch * v_batch + head * v_head + tl.program_id(0) * V
    if MODE != "none":
        g_ptr += batch * g_batch + head * g_head
    dy_ptr += place * length * values + tl.program_id(0) * V
    dv_ptr += place * length * values + tl.program_id(0) * V
    dk_ptr += (tl.program_id(0) * tl.num_programs(1) + place) * length * keys
    row, lane, column = tl.arange(0, C), tl.arange(0, K), tl.arange(0, V)
    width = values - tl.program_id(0) * V
    later = tl.zeros([K, V], tl.float32)  # the gradient of the state after the chunk
    chunks = (length + C - 1) // C
    for back in range(chunks):
        t = (chunks - 1 - back) * C + row
        q = _rows(q_ptr, t, lane, length, keys, q_time)
        k = _rows(k_ptr, t, lane, length, keys, k_time)
        v = _rows(v_ptr, t, column, length, width, v_time)
        dy = _rows(dy_ptr, t, column, length, width, values)
        total, before, last = _decays(g_ptr, t, lane, length, keys, g_time, lowest, STRICT, MODE)
        remaining = tl.exp(last - total)
        weights = tl.dot(dy, tl.trans(v), input_precision=PRECISION)
        weights = tl.where(_visible(row, STRICT), weights, 0.0)
        scores = _scores(q, k, total, before, row, STRICT, MODE, PRECISION)
        dv = tl.dot(tl.trans(scores), dy, input_precision=PRECISION)
        dv += tl.dot(k * remaining, later, input_precision=PRECISION)
        dk = tl.dot(v, tl.trans(later), input_precision=PRECISION) * remaining
        if MODE == "feature":
            for at in range(C):
                decay = tl.exp(tl.minimum(_row(before, at, row) - total, 0.0))
                dk += tl.trans(_row(weights, at, row)) * _row(q, at, row) * decay
        else:
            decay = tl.exp(tl.minimum(before - tl.trans(total), 0.0))
            dk += tl.dot(tl.trans(weights * decay), q, input_precision=PRECISION)
        real = (t < length)[:, None]
        inside = real & (column < width)[None, :]
        tl.store(dv_ptr + t[:, None] * values + column[None, :], dv, inside)
        inside = real & (lane < keys)[None, :]
        tl.store(dk_ptr + t[:, None] * keys + lane[None, :], dk, inside)
        entry = tl.dot(tl.trans(q * tl.exp(before)), dy, input_precision=PRECISION)
        later = tl.trans(tl.exp(last)) * later + entry


BUILDS = [
    Build(
        program,
        {"STRICT": strict, "MODE": mode, "PRECISION": "ieee", "C": 16, "K": 64, "V": values},
        {"lowest": "fp32"},
    )
    for program, values in ((attend, 64), (query_gradients, 32), (key_gradients, 32))
    for mode, strict in (("feature", True), ("head", False))
]
