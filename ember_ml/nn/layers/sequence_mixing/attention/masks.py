"""Masks of attention, from the padding, the caller and the distance of positions."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.tensor import Tensor


def combined(
    padding: Tensor | None, attention_mask: Tensor | None, bias: Tensor | None = None
) -> Tensor | None:
    """One mask that broadcasts to (batch, heads, queries, keys): bools, or numbers to add.

    Args:
        padding: (batch, keys), False where there is padding.
        attention_mask: (queries, keys), (batch, queries, keys) or (batch, heads, queries, keys):
            bools, True where a query may attend, or numbers.
        bias: numbers of (heads, queries, keys).
    """
    allowed = None if padding is None else ops.astype(padding, bool_)[:, None, None, :]
    if attention_mask is not None:
        if attention_mask.ndim == 3:
            attention_mask = attention_mask[:, None]
        if attention_mask.dtype is bool_:
            allowed = attention_mask if allowed is None else allowed & attention_mask
        else:
            bias = attention_mask if bias is None else bias + attention_mask
    if bias is None or allowed is None:
        return allowed if bias is None else bias
    return ops.where(allowed, bias, -math.inf)


def alibi(num_heads: int, queries: int, keys: int, like: Tensor) -> Tensor:
    """The biases of ALiBi on the backend of a tensor."""
    return convert_to_tensor(ops.alibi_bias(num_heads, queries, keys), backend=like.backend)
