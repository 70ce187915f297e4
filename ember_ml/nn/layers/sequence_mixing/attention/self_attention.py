"""Self-attention."""

from __future__ import annotations

from typing import TypeAlias

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1, Count, PositionEncoding, Positive, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.attention.base import (
    BaseAttention,
    alibi_bias,
    combine_masks,
)
from ember_ml.nn.layers.sequence_mixing.base import new_zeros
from ember_ml.registry import register

KVCache: TypeAlias = tuple[Tensor, Tensor] | tuple[Tensor, Tensor, Tensor]
"""Keys and values, (batch, heads, time, head features), and with a window the next position."""


@register("layers/attention", aliases=["self_attention"], config_name="AttentionConfig")
class SelfAttention(BaseAttention):
    r"""Self-attention: each position attends to the positions of its own sequence.

    .. math:: y = W_o \, \mathrm{softmax}\!\left(\frac{q k^\top}{\sqrt{d}}\right) v, \quad
        (q, k, v) = W x + b

    The state of `step` is the KV cache: the keys and values of all positions so far. With a window
    its size is constant.

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 1.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        causal: Whether positions attend only to themselves and earlier positions. Default: True.
        window: Number of earlier (and, if not causal, later) positions that each position attends
            to. Default: all.
        positions: Position encoding. "rope" rotates queries and keys (pairing the two halves of a
            head), "alibi" adds a bias that falls with distance, "none" adds nothing.
            Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> layer = nn.layers.sequence_mixing.SelfAttention(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
        >>> y, (keys, values) = layer.step(ops.ones((2, 8)), layer.initial_state(2))
        >>> keys.shape
        (2, 2, 1, 4)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 1,
        num_kv_heads: Size | None = None,
        causal: bool = True,
        window: Count | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, num_heads, num_kv_heads, bias, dropout)
        if positions == "rope" and self.head_features % 2:
            raise ArgumentError(
                f"{type(self).__name__}: positions='rope' requires an even number of features per "
                f"head, but features / num_heads = {features} / {num_heads} = {self.head_features}"
            )
        self.is_causal = causal
        self.window = window
        self.positions = positions
        self.rope_base = rope_base
        width = (num_heads + 2 * self.num_kv_heads) * self.head_features
        self.qkv = Dense(features, width, bias=bias)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example; 0 without a window."""
        return 0 if self.window is None else self._pair_size * (self.window + 1)

    @property
    def state_per_token(self) -> int:
        """Number of values that the state grows by at each position; 0 with a window."""
        return self._pair_size if self.window is None else 0

    @property
    def _pair_size(self) -> int:
        return 2 * self.num_kv_heads * self.head_features

    def forward(
        self, x: Tensor, mask: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Mix the sequence.

        Args:
            x: Input, (batch, time, features).
            mask: (batch, time), False for padding, which is not attended to.
            attention_mask: Booleans, True where a query may attend to a key, or biases of the
                scores: (time, time), (batch, time, time) or (batch, heads, time, time).
        """
        self.check_sequence(x, mask)
        query, key, value = self._project(x, None, 0)
        bias = None
        if self.positions == "alibi":
            bias = alibi_bias(self.num_heads, x.shape[1], x.shape[1], x)
        y = self.attend(
            query,
            key,
            value,
            combine_masks(mask, attention_mask, bias),
            causal=self.is_causal,
            window=None if self.window is None else self.window + 1,
        )
        return self.merge_heads(y)

    def initial_state(self, batch: int) -> KVCache:
        """Return an empty KV cache, (batch, heads, 0, head features).

        With a window the cache has its final size, and includes the position of the next step.
        """
        if not self.is_causal:
            raise NotImplementedError(
                f"{type(self).__name__} with causal=False needs the whole sequence; it has no step"
            )
        length = 0 if self.window is None else self.window + 1
        weight = self.qkv.weight
        empty = new_zeros(weight, (batch, self.num_kv_heads, length, self.head_features))
        if self.window is None:
            return empty, empty
        position = convert_to_tensor([0] * batch, dtype="int64", backend=weight.backend)
        return empty, empty, position

    def step(self, x: Tensor, state: KVCache) -> tuple[Tensor, KVCache]:
        """Return the output at one position, and the cache with its key and value."""
        self.check_features(x, self.features)
        keys, values, *rest = state
        position = rest[0] if rest else None
        query, key, value = self._project(x[:, None], position, 0 if rest else keys.shape[2])
        if position is not None:  # drop the oldest entry of the window
            keys, values = keys[:, :, 1:], values[:, :, 1:]
        keys, values = ops.concat([keys, key], axis=2), ops.concat([values, value], axis=2)
        bias = None
        if self.positions == "alibi":
            bias = alibi_bias(self.num_heads, 1, keys.shape[2], x)
        is_filled = None if position is None else _filled(position, keys)
        y = self.attend(query, keys, values, combine_masks(is_filled, None, bias))
        y = self.merge_heads(y)[:, 0]
        return y, (keys, values) if position is None else (keys, values, position + 1)

    def _project(
        self, x: Tensor, position: Tensor | None, offset: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values by head; `position` or `offset` is the first position."""
        num_queries, num_keys = self.num_heads, self.num_kv_heads
        heads = self.split_heads(self.qkv(x))
        if self.positions != "rope":
            query, key, value = ops.split(heads, [num_queries, num_queries + num_keys], axis=1)
            return query, key, value
        rotated, value = ops.split(heads, [num_queries + num_keys], axis=1)
        start = None if position is None else position[:, None, None]
        rotated = ops.rope(rotated, start, base=self.rope_base, offset=offset)
        query, key = ops.split(rotated, [num_queries], axis=1)
        return query, key, value


def _filled(position: Tensor, keys: Tensor) -> Tensor:
    """Return which places of the window hold a key, the last being the newest, (batch, keys)."""
    age = ops.cumsum(ops.ones_like(keys[0, 0, :, 0], dtype="int64"), axis=0)[::-1] - 1
    return age <= position[:, None]


Attention = SelfAttention


@register("layers/mh_attention", aliases=["mh-attention", "multi_head_attention"])
class MultiHeadAttention(SelfAttention):
    r"""Self-attention with 16 heads by default.

    .. math:: y = W_o \, [\mathrm{softmax}(q_1 k_1^\top / \sqrt{d}) v_1, \dots,
        \mathrm{softmax}(q_H k_H^\top / \sqrt{d}) v_H]

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 16.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        causal: Whether positions attend only to themselves and earlier positions. Default: True.
        window: Number of earlier (and, if not causal, later) positions that each position attends
            to. Default: all.
        positions: Position encoding: "rope", "alibi" or "none". Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> nn.layers.sequence_mixing.MultiHeadAttention(32)(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 16,
        num_kv_heads: Size | None = None,
        causal: bool = True,
        window: Count | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(
            features, num_heads, num_kv_heads, causal, window, positions, rope_base, bias, dropout
        )
