r"""Linear attention with decays, in chunks: the core of several layers.

.. math:: S_t = \mathrm{diag}(e^{g_t}) S_{t-1} + k_t v_t^\top, \quad o_t = S_t^\top q_t

A chunk's own positions are matched by matrix products; what came before it arrives as the state at
its beginning. Decays are kept as logarithms, and every exponent that is taken lies below a bound,
so that strong decays do no harm.
"""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import bool_, float32
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.ops import matmul, matrix_transpose

LEAST = -20.0
"""Logarithms of decays below are taken for it: the state is then gone in single precision."""
_BLOCK = 4
"""The least decay does not overflow over so many steps: exp(4 * 20)."""


def chunk_length(time: int, key_features: int) -> int:
    """How many positions to match by products: where states are big, more."""
    longest = 64 if key_features >= 64 else 32
    return min(longest, max(_BLOCK, 1 << (time - 1).bit_length()))


def head_size(name: str, features: int, num_heads: int) -> int:
    """The features of a head, which must come out even."""
    if features % num_heads:
        raise ArgumentError(
            f"{name}: features={features} must be a multiple of num_heads={num_heads}"
        )
    return features // num_heads


def wide(x: Tensor) -> Tensor:
    """In single precision, if x is in half precision."""
    return ops.astype(x, float32) if x.dtype.bits == 16 else x


def heads(x: Tensor, num_heads: int) -> Tensor:
    """(batch, time, features) -> (batch, heads, time, features of a head), in full precision."""
    shape = (*x.shape[:2], num_heads, x.shape[-1] // num_heads)
    return ops.permute_dims(ops.reshape(wide(x), shape), (0, 2, 1, 3))


def rows(x: Tensor, num_heads: int) -> Tensor:
    """(batch, features) -> (batch, heads, features of a head), in full precision."""
    return ops.reshape(wide(x), (x.shape[0], num_heads, x.shape[-1] // num_heads))


def zeros(like: Tensor, *shape: int) -> Tensor:
    """A state on the backend of a matrix, in full precision."""
    return ops.broadcast_to(ops.zeros_like(wide(like[0, 0])), shape)


def shown(x: Tensor, mask: Tensor | None) -> Tensor:
    """x, (batch, time, n), with zeros where there is padding."""
    return x if mask is None else ops.where(ops.astype(mask, bool_)[:, :, None], x, 0.0)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    decay: Tensor | None = None,
    bonus: Tensor | None = None,
) -> Tensor:
    """The outputs of a whole sequence: (batch, heads, time, value features).

    Args:
        query: (batch, heads, time, key features).
        key: the same shape.
        value: (batch, heads, time, value features).
        decay: logarithms of the decays of each key feature, in the shape of the keys, or of a
            whole head: (batch or 1, heads, time, 1); none if not given.
        bonus: (heads, key features), if a position reads the state from before it, and its own
            key and value with this weight.
    """
    time, size = query.shape[2], chunk_length(query.shape[2], query.shape[3])
    q, k, v = (chunked(x, size) for x in (query, key, value))
    strict = bonus is not None
    if decay is None:
        y = _joined(matmul(plain_scores(q, k, strict), v), q, matmul(matrix_transpose(k), v), None)
    else:
        total, before = summed(chunked(ops.maximum(decay, LEAST), size), strict)
        match = head_scores if decay.shape[-1] == 1 else scores
        within = matmul(match(q, k, total, before, strict), v)
        last = total[:, :, :, -1:]
        left = matmul(matrix_transpose(k * ops.exp(last - total)), v)
        y = _joined(within, q * ops.exp(before), left, matrix_transpose(ops.exp(last)))
    y = ops.reshape(y, (*y.shape[:2], -1, y.shape[-1]))[:, :, :time]
    if bonus is None:
        return y
    return y + ops.sum(query * key * bonus[:, None], axis=-1, keepdims=True) * value


def chunked(x: Tensor, size: int) -> Tensor:
    """(batch, heads, time, n) -> (batch, heads, chunks, size, n), with zeros at the end."""
    batch, heads, time, features = x.shape
    if time % size:
        x = ops.pad(x, ((0, 0), (0, 0), (0, -time % size), (0, 0)))
    return ops.reshape(x, (batch, heads, -(-time // size), size, features))


def summed(decay: Tensor, strict: bool) -> tuple[Tensor, Tensor]:
    """The decays from the chunk's beginning to each key, and to what each query reads."""
    total = ops.cumsum(decay, axis=-2)
    return total, total - decay if strict else total


def plain_scores(q: Tensor, k: Tensor, strict: bool = False) -> Tensor:
    """Products of queries and keys up to them: (..., size, size)."""
    return ops.tril(matmul(q, matrix_transpose(k)), -1 if strict else 0)


def head_scores(q: Tensor, k: Tensor, total: Tensor, before: Tensor, strict: bool) -> Tensor:
    """The same with a decay of the whole head."""
    return matmul(q, matrix_transpose(k)) * head_decay(total, before, strict)


def head_decay(total: Tensor, before: Tensor, strict: bool) -> Tensor:
    """Decays from key to query, zero where the key comes later: (..., size, size)."""
    diagonal = -1 if strict else 0
    seen = ops.tril(before - matrix_transpose(total), diagonal)  # elsewhere it could overflow
    return ops.tril(ops.exp(seen), diagonal)


def scores(q: Tensor, k: Tensor, total: Tensor, before: Tensor, strict: bool) -> Tensor:
    """The same with a decay of each key feature.

    A product of two factors has to stand for the decay from key to query. Between the halves of a
    block these are the decays to and from its middle, both at most 1; the halves are matched by
    themselves, until a block is so short that no factor overflows.
    """
    size = q.shape[-2]
    if size <= _BLOCK:
        middle = total[..., size // 2 - 1 : size // 2, :]
        return ops.tril(_decayed(q, k, total, before, middle), -1 if strict else 0)
    q, k, total, before = (
        ops.reshape(x, (*x.shape[:-2], 2, size // 2, x.shape[-1])) for x in (q, k, total, before)
    )
    own = scores(q, k, total, before, strict)
    q, k, total, before = (
        q[..., 1, :, :],
        k[..., 0, :, :],
        total[..., 0, :, :],
        before[..., 1, :, :],
    )
    middle = total[..., -1:, :]
    across = _decayed(q, k, total, before, middle)
    first, second = own[..., 0, :, :], own[..., 1, :, :]
    upper = ops.concat([first, ops.zeros_like(first)], axis=-1)
    return ops.concat([upper, ops.concat([across, second], axis=-1)], axis=-2)


def _decayed(q: Tensor, k: Tensor, total: Tensor, before: Tensor, middle: Tensor) -> Tensor:
    return matmul(q * ops.exp(before - middle), matrix_transpose(k * ops.exp(middle - total)))


def _joined(within: Tensor, q: Tensor, left: Tensor, decay: Tensor | None) -> Tensor:
    """What a chunk finds in itself, and what it reads from the state that enters it.

    Args:
        within: (batch, heads, chunks, size, value features).
        q: the queries, decayed to the chunk's beginning.
        left: what each chunk leaves behind: (batch, heads, chunks, key, value features).
        decay: over each chunk, (batch, heads, chunks, key features or 1, 1).
    """
    chunks = within.shape[2]
    if chunks < 2:
        return within
    states = entering(left[:, :, :-1], None if decay is None else decay[:, :, :-1])
    first, rest = ops.split(within, [1], axis=2)
    return ops.concat([first, rest + matmul(q[:, :, 1:], states)], axis=2)


def entering(left: Tensor, decay: Tensor | None) -> Tensor:
    """The states after each chunk, from what each leaves behind."""
    if left.shape[2] == 1:
        return left
    if decay is None:
        return ops.cumsum(left, axis=2)
    return ops.linear_recurrence(decay, left, axis=2)[0]


def step(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    state: Tensor,
    decay: Tensor | None = None,
    bonus: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The output of one position and the state after it: (batch, heads, key, value features).

    Args:
        query: (batch, heads, key features).
        key: the same shape.
        value: (batch, heads, value features).
        state: (batch, heads, key features, value features).
        decay: logarithms, (batch, heads, key features or 1).
        bonus: (heads, key features), as `attend` has it.
    """
    entry = key[..., None] * value[..., None, :]
    read = state if bonus is None else state + bonus[..., None] * entry
    if decay is not None:
        state = ops.exp(ops.maximum(decay, LEAST))[..., None] * state
    state = state + entry
    read = state if bonus is None else read
    return matmul(query[..., None, :], read)[..., 0, :], state
