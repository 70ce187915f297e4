r"""Chunked linear attention with decay, shared by the ops and the torch backend.

.. math:: S_t = \mathrm{diag}(e^{g_t}) S_{t-1} + k_t v_t^\top, \quad o_t = S_t^\top q_t

Positions within a chunk interact by matrix products. Earlier positions enter through the state at
the start of the chunk. Decays are stored as logarithms, and all exponents are bounded, so that
strong decays do not overflow.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ember_ml._core.errors import ShapeError

MIN_LOG_DECAY = -20.0
"""Smaller log decays are clipped: the state then vanishes in single precision."""

_BLOCK = 4
"""Number of steps with the smallest decay that do not overflow: exp(4 * 20)."""


class Recurrence(Protocol):
    """Function like `ops.linear_recurrence`."""

    def __call__(self, a: Any, b: Any, h0: Any, axis: int) -> tuple[Any, Any]:
        """Return the states, and the last one."""


class Arrays(NamedTuple):
    """Functions of an array library.

    Attributes:
        xp: Module with the functions of the array API standard that are called here.
        pad: Function that appends zeros to axis 2 of an array.
        recurrence: Linear recurrence.
        solve: Function of lower triangular matrices with a unit diagonal and right-hand sides.
    """

    xp: Any
    pad: Any
    recurrence: Recurrence
    solve: Any


def check(op: str, query: Any, key: Any, value: Any, decay: Any, bonus: Any) -> None:
    """Raise a ShapeError unless the shapes agree.

    Args:
        op: Name of the op, for the message.
        query: (batch, heads, time, key features).
        key: In the shape of the query.
        value: (batch, heads, time, value features).
        decay: (batch or 1, heads, time, key features or 1), or None.
        bonus: (heads, key features), or None.
    """
    shape = tuple(query.shape)
    right = len(shape) == 4 and tuple(key.shape) == shape and tuple(value.shape[:-1]) == shape[:-1]
    if right and decay is not None:
        batch, *middle, features = decay.shape if len(decay.shape) == 4 else (0, 0)
        right = batch in (1, shape[0]) and tuple(middle) == shape[1:3] and features in (1, shape[3])
    if right and (bonus is None or tuple(bonus.shape) == (shape[1], shape[3])):
        return
    given = (query, key, value, decay, bonus)
    shapes = ", ".join(str(tuple(x.shape)) for x in given if x is not None)
    raise ShapeError(
        f"{op}: got shapes {shapes}; expected query and key (batch, heads, time, key features), "
        "value (batch, heads, time, value features), decay (batch or 1, heads, time, key features "
        "or 1) and bonus (heads, key features)"
    )


def chunk_length(time: int, key_features: int) -> int:
    """Return the number of positions per chunk; larger states use longer chunks.

    Args:
        time: Number of positions.
        key_features: Number of rows of the state.
    """
    longest = 64 if key_features >= 64 else 32
    return min(longest, max(_BLOCK, 1 << (time - 1).bit_length()))


def attend(
    arrays: Arrays, query: Any, key: Any, value: Any, decay: Any, strict: bool, state: Any
) -> tuple[Any, Any]:
    """Return the outputs of a sequence, (batch, heads, time, value features), and the state.

    Args:
        arrays: Functions of the array library.
        query: Queries, (batch, heads, time, key features).
        key: Keys, in the shape of the queries.
        value: Values, (batch, heads, time, value features).
        decay: Log decays, not below `MIN_LOG_DECAY`, or None.
        strict: Whether each position reads the state from before its own update.
        state: State before the first position, or None; the second result is then None.
    """
    xp = arrays.xp
    time, size = query.shape[2], chunk_length(query.shape[2], query.shape[3])
    q, k, v = (split_chunks(arrays, x, size) for x in (query, key, value))
    if decay is None:
        scores = xp.tril(xp.matmul(q, mt(xp, k)), -1 if strict else 0)
        update, chunk_decay = xp.matmul(mt(xp, k), v), None
    else:
        g = split_chunks(arrays, decay, size)
        total = xp.cumsum(g, -2)
        before = total - g if strict else total
        if decay.shape[-1] == 1:
            scores = xp.matmul(q, mt(xp, k)) * head_decay(xp, total, before, strict)
        else:
            scores = _feature_decay_scores(xp, q, k, total, before, strict)
        last = total[:, :, :, -1:]
        update = xp.matmul(mt(xp, k * xp.exp(last - total)), v)
        q, chunk_decay = q * xp.exp(before), mt(xp, xp.exp(last))
    y, state = _add_carried(arrays, xp.matmul(scores, v), q, update, chunk_decay, state)
    return xp.reshape(y, (*y.shape[:2], y.shape[2] * y.shape[3], y.shape[4]))[:, :, :time], state


def mt(xp: Any, x: Any) -> Any:
    """Return transposed matrices.

    Args:
        xp: Array module.
        x: (..., rows, columns).
    """
    return xp.swapaxes(x, -1, -2)


def split_chunks(arrays: Arrays, x: Any, size: int) -> Any:
    """Reshape (batch, heads, time, n) to (batch, heads, chunks, size, n), padded with zeros.

    Args:
        arrays: Functions of the array library.
        x: The array.
        size: Number of positions per chunk.
    """
    batch, heads, time, features = x.shape
    if time % size:
        x = arrays.pad(x, -time % size)
    return arrays.xp.reshape(x, (batch, heads, -(-time // size), size, features))


def head_decay(xp: Any, total: Any, before: Any, strict: bool) -> Any:
    """Return the decays from keys to queries, zero for later keys, (..., size, size).

    Args:
        xp: Array module.
        total: Log decays from the chunk's start to each key, (..., size, 1).
        before: Log decays from the chunk's start to what each query reads.
        strict: Whether a query does not read its own key.
    """
    diagonal = -1 if strict else 0
    exponent = xp.tril(before - mt(xp, total), diagonal)  # exp would overflow elsewhere
    return xp.tril(xp.exp(exponent), diagonal)


def _feature_decay_scores(xp: Any, q: Any, k: Any, total: Any, before: Any, strict: bool) -> Any:
    """Return the causal products with one decay per key feature.

    The decay from key to query must be a product of two factors. Between the two halves of a block
    these are the decays to and from its middle, both at most 1. The halves themselves are computed
    recursively, until a block is so short that no factor overflows.
    """
    size = q.shape[-2]
    if size <= _BLOCK:
        middle = total[..., size // 2 - 1 : size // 2, :]
        return xp.tril(_decayed_products(xp, q, k, total, before, middle), -1 if strict else 0)
    q, k, total, before = (
        xp.reshape(x, (*x.shape[:-2], 2, size // 2, x.shape[-1])) for x in (q, k, total, before)
    )
    halves = _feature_decay_scores(xp, q, k, total, before, strict)
    q, before = q[..., 1, :, :], before[..., 1, :, :]
    k, total = k[..., 0, :, :], total[..., 0, :, :]
    across = _decayed_products(xp, q, k, total, before, total[..., -1:, :])
    first, second = halves[..., 0, :, :], halves[..., 1, :, :]
    upper = xp.concat([first, xp.zeros_like(first)], -1)
    return xp.concat([upper, xp.concat([across, second], -1)], -2)


def _decayed_products(xp: Any, q: Any, k: Any, total: Any, before: Any, middle: Any) -> Any:
    return xp.matmul(q * xp.exp(before - middle), mt(xp, k * xp.exp(middle - total)))


def _add_carried(
    arrays: Arrays, within: Any, q: Any, update: Any, decay: Any, state: Any
) -> tuple[Any, Any]:
    """Add what each chunk reads from the state at its start; return the last state as well.

    Args:
        arrays: Functions of the array library.
        within: Outputs from within each chunk, (batch, heads, chunks, size, value features).
        q: Queries, decayed to the chunk's start.
        update: What each chunk adds to the state, (batch, heads, chunks, key, value features).
        decay: Decay over each chunk, (batch, heads, chunks, key features or 1, 1).
        state: State before the first chunk, (batch, heads, key, value features). None: zeros,
            and the last state is not computed.
    """
    xp = arrays.xp
    if state is not None:
        after = _states_after(arrays, update, decay, state)
        before = xp.concat([state[:, :, None], after[:, :, :-1]], 2)
        return within + xp.matmul(q, before), after[:, :, -1]
    if within.shape[2] < 2:
        return within, None
    short = None if decay is None else decay[:, :, :-1]
    states = _states_after(arrays, update[:, :, :-1], short, None)
    rest = within[:, :, 1:] + xp.matmul(q[:, :, 1:], states)
    return xp.concat([within[:, :, :1], rest], 2), None


def _states_after(arrays: Arrays, update: Any, decay: Any, state: Any) -> Any:
    """Return the state after each chunk."""
    if state is None and update.shape[2] == 1:
        return update
    if decay is None:
        total = arrays.xp.cumsum(update, 2)
        return total if state is None else total + state[:, :, None]
    return arrays.recurrence(decay, update, state, axis=2)[0]
