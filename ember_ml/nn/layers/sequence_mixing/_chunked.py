"""Heads and steps of linear attention with decay: the core of several layers."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.dtype import float32
from ember_ml._core.tensor import Tensor
from ember_ml.backend.linear_attention import MIN_LOG_DECAY as MIN_LOG_DECAY
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import new_zeros
from ember_ml.ops import matmul
from ember_ml.ops.linear_attention import chunked_attention, chunked_delta_rule


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
    if state is None:
        return ops.gated_linear_attention(query, key, value, decay, bonus), None
    return chunked_attention(query, key, value, decay, bonus, state)


def correct(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rate: Tensor,
    decay: Tensor | None = None,
    *,
    state: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return the outputs of the delta rule, (batch, heads, time, value features), and the state.

    Args:
        query: Queries, (batch, heads, time, key features).
        key: Keys, in the shape of the queries.
        value: Values, (batch, heads, time, value features).
        rate: Step sizes of the corrections, (batch, heads, time, 1).
        decay: Log decays, (batch, heads, time, 1). Default: no decay.
        state: State before the first position, (batch, heads, key features, value features).
            Default: zeros; the second result is then None.
    """
    if state is None:
        return ops.gated_delta_rule(query, key, value, rate, decay), None
    return chunked_delta_rule(query, key, value, rate, decay, state)


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
