"""Attention of a sequence to another."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.attention.base import BaseAttention
from ember_ml.nn.layers.sequence_mixing.attention.masks import combined
from ember_ml.registry import register

Memory = tuple[Tensor, Tensor, Tensor | None]
"""The keys and values of a context, (batch, heads, context time, head features), and its mask."""


@register("layers/cross_attention", aliases=["cross-attention"])
class CrossAttention(BaseAttention):
    r"""Each position takes from a context, another sequence, what its query finds in its keys.

    .. math:: y = W_o \, \mathrm{softmax}\!\left(\frac{q k^\top}{\sqrt{d}}\right) v, \quad
        q = W_q x, \; (k, v) = W_{kv} c

    There is no state that goes from step to step: `read` a context once, and `look_up` in it one
    position at a time or many.

    Args:
        features: how many x has.
        context_features: how many the context has; as many if not given.
        num_heads: how many heads of queries share the features.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

    Shape: (batch, time, features), (batch, context time, context features) -> (batch, time,
    features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> layer = nn.layers.sequence_mixing.CrossAttention(8, context_features=6, num_heads=2)
        >>> layer(ops.ones((2, 5, 8)), context=ops.ones((2, 9, 6))).shape
        (2, 5, 8)
    """

    is_causal = False

    def __init__(
        self,
        features: Size,
        context_features: Size | None = None,
        num_heads: Size = 1,
        num_kv_heads: Size | None = None,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(features, num_heads, num_kv_heads, bias, dropout)
        self.context_features = context_features or features
        self.query = Dense(features, features, bias=bias)
        width = 2 * self.num_kv_heads * self.head_features
        self.key_value = Dense(self.context_features, width, bias=bias)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        context: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> Tensor:
        """The sequence, with what it found in the context.

        Args:
            x: (batch, time, features).
            mask: (batch, context time), False where the context has padding.
            context: (batch, context time, context features); x itself if not given.
            attention_mask: bools, True where a query may attend to a key, or numbers that are
                added to the scores: (time, context time), (batch, time, context time) or (batch,
                heads, time, context time).
        """
        self.check_sequence(x)
        memory = self.read(x if context is None else context, mask)
        return self.look_up(x, memory, attention_mask)

    def read(self, context: Tensor, mask: Tensor | None = None) -> Memory:
        """The keys and values of a context, and its mask, to look up in as often as wanted.

        Args:
            context: (batch, context time, context features).
            mask: (batch, context time), False where the context has padding.
        """
        name = type(self).__name__
        if context.ndim != 3 or context.shape[-1] != self.context_features:
            raise ShapeError(
                f"{name} takes a context of (batch, time, {self.context_features}), not "
                f"{context.shape}"
            )
        if mask is not None and mask.shape != context.shape[:2]:
            raise ShapeError(
                f"{name} takes a mask of the context, {context.shape[:2]}, not {mask.shape}"
            )
        key, value = ops.split(self.heads(self.key_value(context)), 2, axis=1)
        return key, value, mask

    def look_up(self, x: Tensor, memory: Memory, attention_mask: Tensor | None = None) -> Tensor:
        """What positions, (batch, time, features), find in a context that was read."""
        key, value, mask = memory
        query = self.heads(self.query(x))
        return self.merged(self.attend(query, key, value, combined(mask, attention_mask)))
