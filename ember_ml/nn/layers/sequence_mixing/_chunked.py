r"""Chunked linear attention with decay: the core of several layers.

.. math:: S_t = \mathrm{diag}(e^{g_t}) S_{t-1} + k_t v_t^\top, \quad o_t = S_t^\top q_t

Positions within a chunk interact by matrix products. Earlier positions enter through the state at
the start of the chunk. Decays are stored as logarithms, and all exponents are bounded, so that
strong decays do not overflow.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import new_zeros
from ember_ml.ops import matmul, matrix_transpose

MIN_LOG_DECAY = -20.0
"""Smaller log decays are clipped: the state then vanishes in single precision."""
_BLOCK = 4
"""Number of steps with the smallest decay that do not overflow: exp(4 * 20)."""


def chunk_length(time: int, key_features: int) -> int:
    """Return the number of positions per chunk; larger states use longer chunks."""
    longest = 64 if key_features >= 64 else 32
    return min(longest, max(_BLOCK, 1 << (time - 1).bit_length()))


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch, time, features) to (batch, heads, time, head features), in float32."""
    shape = (*x.shape[:2], num_heads, x.shape[-1] // num_heads)
    return ops.permute_dims(ops.reshape(upcast_half(x), shape), (0, 2, 1, 3))


def split_heads_step(x: Tensor, num_heads: int) -> Tensor:
    """Reshape (batch, features) to (batch, heads, head features), in float32."""
    return ops.reshape(upcast_half(x), (x.shape[0], num_heads, x.shape[-1] // num_heads))


def zero_state(weight: Tensor, *shape: int) -> Tensor:
    """Return a state of zeros on the backend of a weight, at least in float32."""
    return new_zeros(weight, shape, float32 if weight.dtype.bits == 16 else None)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor | None = None,
    bonus: Tensor | None = None,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return the outputs of a sequence, (batch, heads, time, value features), and the state.

    Args:
        query: Queries, (batch, heads, time, key features).
        key: Keys, in the shape of the queries.
        value: Values, (batch, heads, time, value features).
        decay: Log decays per key feature, in the shape of the keys, or per head,
            (batch or 1, heads, time, 1). Default: no decay.
        bonus: Weight of a position's own key and value, (heads, key features). If given, each
            position reads the state from before its own update.
        state: State before the first position, (batch, heads, key features, value features).
            Default: zeros; the second result is then None.
    """
    time, size = query.shape[2], chunk_length(query.shape[2], query.shape[3])
    q, k, v = (split_chunks(x, size) for x in (query, key, value))
    strict = bonus is not None
    if decay is None:
        within = matmul(_scores(q, k, strict), v)
        y, state = _add_carried(within, q, matmul(matrix_transpose(k), v), None, state)
    else:
        total, before = cumulative_decay(
            split_chunks(ops.maximum(decay, MIN_LOG_DECAY), size), strict
        )
        scores = _head_decay_scores if decay.shape[-1] == 1 else _feature_decay_scores
        within = matmul(scores(q, k, total, before, strict), v)
        last = total[:, :, :, -1:]
        update = matmul(matrix_transpose(k * ops.exp(last - total)), v)
        chunk_decay = matrix_transpose(ops.exp(last))
        y, state = _add_carried(within, q * ops.exp(before), update, chunk_decay, state)
    y = ops.reshape(y, (*y.shape[:2], -1, y.shape[-1]))[:, :, :time]
    if bonus is None:
        return y, state
    return y + ops.sum(query * key * bonus[:, None], axis=-1, keepdims=True) * value, state


def split_chunks(x: Tensor, size: int) -> Tensor:
    """Reshape (batch, heads, time, n) to (batch, heads, chunks, size, n), padded with zeros."""
    batch, heads, time, features = x.shape
    if time % size:
        x = ops.pad(x, ((0, 0), (0, 0), (0, -time % size), (0, 0)))
    return ops.reshape(x, (batch, heads, -(-time // size), size, features))


def cumulative_decay(decay: Tensor, strict: bool) -> tuple[Tensor, Tensor]:
    """Return the log decays from the chunk's start to each key, and to what each query reads."""
    total = ops.cumsum(decay, axis=-2)
    return total, total - decay if strict else total


def _scores(q: Tensor, k: Tensor, strict: bool) -> Tensor:
    """Return the causal products of queries and keys, (..., size, size)."""
    return ops.tril(matmul(q, matrix_transpose(k)), -1 if strict else 0)


def _head_decay_scores(q: Tensor, k: Tensor, total: Tensor, before: Tensor, strict: bool) -> Tensor:
    """Return the causal products with one decay per head."""
    return matmul(q, matrix_transpose(k)) * head_decay(total, before, strict)


def head_decay(total: Tensor, before: Tensor, strict: bool) -> Tensor:
    """Return the decays from keys to queries, zero for later keys, (..., size, size)."""
    diagonal = -1 if strict else 0
    exponent = ops.tril(before - matrix_transpose(total), diagonal)  # exp would overflow elsewhere
    return ops.tril(ops.exp(exponent), diagonal)


def _feature_decay_scores(
    q: Tensor, k: Tensor, total: Tensor, before: Tensor, strict: bool
) -> Tensor:
    """Return the causal products with one decay per key feature.

    The decay from key to query must be a product of two factors. Between the two halves of a block
    these are the decays to and from its middle, both at most 1. The halves themselves are computed
    recursively, until a block is so short that no factor overflows.
    """
    size = q.shape[-2]
    if size <= _BLOCK:
        middle = total[..., size // 2 - 1 : size // 2, :]
        return ops.tril(_decayed_products(q, k, total, before, middle), -1 if strict else 0)
    q, k, total, before = (
        ops.reshape(x, (*x.shape[:-2], 2, size // 2, x.shape[-1])) for x in (q, k, total, before)
    )
    halves = _feature_decay_scores(q, k, total, before, strict)
    q, before = q[..., 1, :, :], before[..., 1, :, :]
    k, total = k[..., 0, :, :], total[..., 0, :, :]
    across = _decayed_products(q, k, total, before, total[..., -1:, :])
    first, second = halves[..., 0, :, :], halves[..., 1, :, :]
    upper = ops.concat([first, ops.zeros_like(first)], axis=-1)
    return ops.concat([upper, ops.concat([across, second], axis=-1)], axis=-2)


def _decayed_products(
    q: Tensor, k: Tensor, total: Tensor, before: Tensor, middle: Tensor
) -> Tensor:
    return matmul(q * ops.exp(before - middle), matrix_transpose(k * ops.exp(middle - total)))


def _add_carried(
    within: Tensor, q: Tensor, update: Tensor, decay: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Add what each chunk reads from the state at its start; return the last state as well.

    Args:
        within: Outputs from within each chunk, (batch, heads, chunks, size, value features).
        q: Queries, decayed to the chunk's start.
        update: What each chunk adds to the state, (batch, heads, chunks, key, value features).
        decay: Decay over each chunk, (batch, heads, chunks, key features or 1, 1).
        state: State before the first chunk, (batch, heads, key, value features). None: zeros,
            and the last state is not computed.
    """
    if state is not None:
        after = _states_after(update, decay, state)
        before = ops.concat([state[:, :, None], after[:, :, :-1]], axis=2)
        return within + matmul(q, before), after[:, :, -1]
    chunks = within.shape[2]
    if chunks < 2:
        return within, None
    states = _states_after(update[:, :, :-1], None if decay is None else decay[:, :, :-1], None)
    first, rest = ops.split(within, [1], axis=2)
    return ops.concat([first, rest + matmul(q[:, :, 1:], states)], axis=2), None


def _states_after(update: Tensor, decay: Tensor | None, state: Tensor | None) -> Tensor:
    """Return the state after each chunk."""
    if state is None and update.shape[2] == 1:
        return update
    if decay is None:
        total = ops.cumsum(update, axis=2)
        return total if state is None else total + state[:, :, None]
    return ops.linear_recurrence(decay, update, state, axis=2)[0]


def step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    state: Tensor,
    decay: Tensor | None = None,
    bonus: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the output of one position, (batch, heads, value features), and the next state.

    Args:
        query: Query, (batch, heads, key features).
        key: Key, (batch, heads, key features).
        value: Value, (batch, heads, value features).
        state: State, (batch, heads, key features, value features).
        decay: Log decays, (batch, heads, key features or 1). Default: no decay.
        bonus: Weight of the position's own key and value, as in `attend`.
    """
    update = key[..., None] * value[..., None, :]
    readable = state if bonus is None else state + bonus[..., None] * update
    if decay is not None:
        state = ops.exp(ops.maximum(decay, MIN_LOG_DECAY))[..., None] * state
    state = state + update
    readable = state if bonus is None else readable
    return matmul(query[..., None, :], readable)[..., 0, :], state
