"""Attention of a sequence to itself."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1, Count, PositionEncoding, Positive, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.attention.base import BaseAttention
from ember_ml.nn.layers.sequence_mixing.attention.masks import alibi, combined
from ember_ml.nn.layers.sequence_mixing.base import zeros_beside
from ember_ml.registry import register


@register("layers/attention", aliases=["self_attention"], config_name="AttentionConfig")
class SelfAttention(BaseAttention):
    r"""Each position takes from the positions of its sequence what its query finds in their keys.

    .. math:: y = W_o \, \mathrm{softmax}\!\left(\frac{q k^\top}{\sqrt{d}}\right) v, \quad
        (q, k, v) = W x + b

    Going step by step, the state keeps the keys and values of the positions so far; with a window,
    of so many positions that their number is constant.

    Args:
        features: how many there are.
        num_heads: how many heads of queries share the features.
        num_kv_heads: how many heads of keys and values there are; each serves a group of query
            heads. As many as of queries if not given.
        causal: whether a position attends to none after it.
        window: how many positions before (and, if not causal, after) a position it attends to;
            to all if not given.
        positions: "rope" turns queries and keys, the halves of the features as pairs; "alibi"
            takes from the scores with distance; "none" leaves the order to the causal mask.
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

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
                f"{type(self).__name__}: positions='rope' takes heads of an even size; "
                f"features={features} in num_heads={num_heads} gives {self.head_features}"
            )
        self.is_causal = causal
        self.window = window
        self.positions = positions
        self.rope_base = rope_base
        width = (num_heads + 2 * self.num_kv_heads) * self.head_features
        self.qkv = Dense(features, width, bias=bias)

    @property
    def state_size(self) -> int:
        """The keys and values of the window; nothing if there is none."""
        return 0 if self.window is None else self._pair_size * (self.window + 1)

    @property
    def state_per_token(self) -> int:
        """A key and a value, if there is no window."""
        return self._pair_size if self.window is None else 0

    @property
    def _pair_size(self) -> int:
        return 2 * self.num_kv_heads * self.head_features

    def forward(
        self, x: Tensor, mask: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Tensor:
        """The sequence mixed.

        Args:
            x: (batch, time, features).
            mask: (batch, time), False where there is padding, which no other position sees.
            attention_mask: bools, True where a query may attend to a key, or numbers that are
                added to the scores: (time, time), (batch, time, time) or (batch, heads, time,
                time).
        """
        self.check_sequence(x, mask)
        query, key, value = self._project(x, None, 0)
        bias = None
        if self.positions == "alibi":
            bias = alibi(self.num_heads, x.shape[1], x.shape[1], x)
        y = self.attend(
            query,
            key,
            value,
            combined(mask, attention_mask, bias),
            causal=self.is_causal,
            window=None if self.window is None else self.window + 1,
        )
        return self.merged(y)

    def initial_state(self, batch: int) -> Any:
        """No keys and values yet: (batch, heads, 0, head features).

        With a window there is room for all of it, and the position of the next step.
        """
        if not self.is_causal:
            raise NotImplementedError(
                f"{type(self).__name__} with causal=False has no form that goes step by step"
            )
        kept = 0 if self.window is None else self.window + 1
        weight = self.qkv.weight
        shape = (batch, self.num_kv_heads, kept, self.head_features)
        empty = zeros_beside(weight, shape)
        if self.window is None:
            return empty, empty
        position = convert_to_tensor([0] * batch, dtype="int64", backend=weight.backend)
        return empty, empty, position

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The output of one position, and the state with its key and value."""
        self.check_features(x, self.features)
        position = None if self.window is None else state[2]
        gone = 0 if self.window is not None else state[0].shape[2]
        query, key, value = self._project(x[:, None], position, gone)
        key, value = (
            ops.concat([kept if self.window is None else kept[:, :, 1:], new], axis=2)
            for kept, new in zip(state[:2], (key, value), strict=True)
        )
        keys = key.shape[2]
        bias = alibi(self.num_heads, 1, keys, x) if self.positions == "alibi" else None
        mask = None if position is None else _filled(position, key)
        y = self.merged(self.attend(query, key, value, combined(mask, None, bias)))[:, 0]
        return y, (key, value) if position is None else (key, value, position + 1)

    def _project(
        self, x: Tensor, position: Tensor | None, offset: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values in heads; the first position is `position` or `offset`."""
        queries, keys = self.num_heads, self.num_kv_heads
        heads = self.heads(self.qkv(x))
        if self.positions != "rope":
            query, key, value = ops.split(heads, [queries, queries + keys], axis=1)
            return query, key, value
        turned, value = ops.split(heads, [queries + keys], axis=1)
        at = None if position is None else position[:, None, None]
        turned = ops.rope(turned, at, base=self.rope_base, offset=offset)
        query, key = ops.split(turned, [queries], axis=1)
        return query, key, value


def _filled(position: Tensor, key: Tensor) -> Tensor:
    """Which places of the window hold a key by now, the last being new: (batch, keys)."""
    back = ops.cumsum(ops.ones_like(key[0, 0, :, 0], dtype="int64"), axis=0)[::-1] - 1
    return back <= position[:, None]


Attention = SelfAttention
