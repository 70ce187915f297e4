"""The base class of attention layers, and attention masks."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.tensor import Tensor
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.sequence_module import Positions, take_positions


class BaseAttention(SequenceMixer):
    """Base of the attention layers: heads, scaled dot-product attention, output projection.

    Subclasses compute the queries, keys and values.

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`, unless
            `head_features` is given.
        num_heads: Number of query heads. Must be divisible by `num_kv_heads`.
        num_kv_heads: Number of key and value heads. None: `num_heads`.
        bias: Whether the projections have biases.
        dropout: Probability of zeroing an attention weight during training.
        head_features: Number of features of a head. Default: `features / num_heads`.
        scale: Factor of the scores. Default: 1 / sqrt(head features).
        softcap: Limit c of the scores s, which become c * tanh(s / c). Default: no limit.
        out_bias: Whether the output projection has a bias. Default: `bias`.
    """

    def __init__(
        self,
        features: int,
        num_heads: int,
        num_kv_heads: int | None,
        bias: bool,
        dropout: float,
        head_features: int | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        out_bias: bool | None = None,
    ) -> None:
        if head_features is None:
            require_divisible(self, features=features, num_heads=num_heads)
        self.num_kv_heads = num_kv_heads or num_heads
        require_divisible(self, num_heads=num_heads, num_kv_heads=self.num_kv_heads)
        self.features = features
        self.num_heads = num_heads
        self.head_features = head_features or features // num_heads
        self.dropout = dropout
        self.scale, self.softcap = scale, softcap
        inner = num_heads * self.head_features
        self.out = Dense(inner, features, bias=bias if out_bias is None else out_bias)

    def split_heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, time, heads * head features) to (batch, heads, time, head features)."""
        shape = (*x.shape[:-1], x.shape[-1] // self.head_features, self.head_features)
        return ops.permute_dims(ops.reshape(x, shape), (0, 2, 1, 3))

    def merge_heads(self, y: Tensor, at: Positions | None = None) -> Tensor:
        """Project (batch, heads, time, head features) to (batch, time, features).

        Args:
            y: Outputs of the heads.
            at: Positions to project. Default: all positions.
        """
        y = ops.permute_dims(y, (0, 2, 1, 3))
        y = ops.reshape(y, (*y.shape[:2], self.out.in_features))
        return self.out(y if at is None else take_positions(y, at))

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
        window: int | None = None,
    ) -> Tensor:
        """Return the scaled dot-product attention, (batch, heads, queries, head features).

        Args:
            query: Queries, (batch, heads, queries, head features).
            key: Keys, (batch, key heads, keys, head features).
            value: Values, in the shape of the keys.
            mask: Booleans, True where a query may attend, or biases of the scores. Default: none.
            causal: Whether queries attend only to keys at or before their position. Default: False.
            window: Number of keys in the window of a query. Default: all.
        """
        return ops.scaled_dot_product_attention(
            query,
            key,
            value,
            mask,
            causal=causal,
            window=window,
            scale=self.scale,
            softcap=self.softcap,
            dropout=self.dropout if self.training else 0.0,
        )


def combine_masks(
    padding: Tensor | None, attention_mask: Tensor | None, bias: Tensor | None = None
) -> Tensor | None:
    """Return one mask, boolean or additive, that broadcasts to (batch, heads, queries, keys).

    Args:
        padding: (batch, keys), False for padding.
        attention_mask: Booleans, True where a query may attend, or biases of the scores: (queries,
            keys), (batch, queries, keys) or (batch, heads, queries, keys).
        bias: Further biases of the scores, (heads, queries, keys). Default: none.
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


def alibi_bias(num_heads: int, queries: int, keys: int, like: Tensor) -> Tensor:
    """Return the biases of ALiBi, (heads, queries, keys), on the backend of another tensor."""
    return convert_to_tensor(ops.alibi_bias(num_heads, queries, keys), backend=like.backend)
