"""Pooling of a sequence's features, at once or part by part."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.sequence_mixing.base import last_positions, new_zeros
from ember_ml.nn.states import State


def pool(x: Tensor, mask: Tensor | None, how: str) -> Tensor:
    """Reduce (batch, time, features) to (batch, features), without the padding.

    Args:
        x: Features of the positions.
        mask: Padding mask of shape (batch, time), False at padding.
        how: "last", "mean" or "max".
    """
    if mask is None:
        if how == "last":
            return x[:, -1]
        return ops.mean(x, axis=1) if how == "mean" else ops.max(x, axis=1)
    shown = ops.expand_dims(mask, 2)
    if how == "max":
        largest = ops.max(ops.where(shown, x, -float("inf")), axis=1)
        return ops.where(ops.any(shown, axis=1), largest, 0.0)
    if how == "mean":
        wide = upcast_half(x)  # half precision does not count far
        count = ops.maximum(ops.sum(shown.astype(wide.dtype), axis=1), 1.0)
        return ops.cast(ops.sum(ops.where(shown, wide, 0.0), axis=1) / count, x.dtype)
    places = ops.cumsum(ops.ones_like(mask, dtype="int64"), axis=1)
    last = ops.max(ops.where(mask, places, 0), axis=1, keepdims=True)
    return ops.sum(ops.where(ops.expand_dims(places == last, 2), x, 0.0), axis=1)


def initial_pool(how: str, batch: int, features: int, like: Tensor) -> State:
    """Return the state of `extend_pool` before the first position.

    Args:
        how: "last", "mean", "max", or "none" for no pooling.
        batch: Batch size.
        features: Number of features.
        like: Tensor whose backend, device and dtype the state has.
    """
    if how == "none":
        return ()
    zeros = new_zeros(like, (batch, features))
    if how == "mean":
        return upcast_half(zeros), upcast_half(new_zeros(like, (batch, 1)))
    return zeros - float("inf") if how == "max" else zeros


def extend_pool(x: Tensor, mask: Tensor | None, how: str, state: State) -> tuple[Tensor, State]:
    """Return the pooled features of all positions so far, and the next state.

    Args:
        x: Features of the next positions, (batch, time, features).
        mask: Padding mask of shape (batch, time), with padding last.
        how: "last", "mean" or "max", as in `pool`, or "none": x is not pooled.
        state: The result of `initial_pool` or of an earlier call.
    """
    if how == "none":
        return x, state
    if how == "last":
        last = last_positions(state[:, None], x, mask)[:, 0]
        return last, last
    shown = None if mask is None else ops.expand_dims(mask, 2)
    if how == "max":
        shielded = x if shown is None else ops.where(shown, x, -float("inf"))
        largest = ops.maximum(state, ops.max(shielded, axis=1)) if x.shape[1] else state
        return ops.where(largest == -float("inf"), 0.0, largest), largest
    total, count = state
    wide = upcast_half(x)
    total = total + ops.sum(wide if shown is None else ops.where(shown, wide, 0.0), axis=1)
    new = x.shape[1] if shown is None else ops.sum(shown.astype(count.dtype), axis=1)
    count = count + new
    return ops.cast(total / ops.maximum(count, 1.0), x.dtype), (total, count)
