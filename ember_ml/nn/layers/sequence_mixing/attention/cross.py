"""Cross-attention."""

from __future__ import annotations

from typing import TypeAlias

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.attention.base import BaseAttention, combine_masks
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register

Memory: TypeAlias = tuple[Tensor, Tensor, Tensor | None]
"""Keys and values of a context, (batch, heads, context time, head features), and its mask."""


@register("layers/cross_attention", aliases=["cross-attention"])
class CrossAttention(BaseAttention):
    r"""Cross-attention: each position attends to another sequence, the context.

    .. math:: y = W_o \, \mathrm{softmax}\!\left(\frac{q k^\top}{\sqrt{d}}\right) v, \quad
        q = W_q x, \; (k, v) = W_{kv} c

    The layer has no recurrent state and no `step`. Call `read` once for a context, and then
    `look_up` for any number of positions.

    Args:
        features: Number of features of x. Must be divisible by `num_heads`.
        context_features: Number of features of the context. Default: `features`.
        num_heads: Number of query heads. Default: 1.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

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

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads; one key and value head is kept by each process."""
        size = self.num_kv_heads * self.head_features
        is_shared = self.num_kv_heads == 1
        key_value = Split(0, sizes=(size, size), kept=(0, 1) if is_shared else ())
        divided = ("num_heads",) if is_shared else ("num_heads", "num_kv_heads")
        return split_between({"query": Split(0), "key_value": key_value}, "out", sizes=divided)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        context: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        state: None = None,
    ) -> Tensor:
        """Attend to the context.

        Args:
            x: Input, (batch, time, features).
            mask: (batch, context time), False for padding of the context.
            context: Context, (batch, context time, context features). Default: x.
            attention_mask: Booleans, True where a query may attend to a key, or biases of the
                scores: (time, context time), (batch, time, context time) or (batch, heads, time,
                context time).
            state: Not supported: the layer has no recurrent state.
        """
        if state is not None:
            raise NotImplementedError(
                f"{type(self).__name__} has no recurrent form; call read() and look_up()"
            )
        self.check_sequence(x)
        memory = self.read(x if context is None else context, mask)
        return self.look_up(x, memory, attention_mask)

    def read(self, context: Tensor, mask: Tensor | None = None) -> Memory:
        """Return the keys, values and mask of a context, for `look_up`.

        Args:
            context: Context, (batch, context time, context features).
            mask: (batch, context time), False for padding.
        """
        name = type(self).__name__
        if context.ndim != 3 or context.shape[-1] != self.context_features:
            raise ShapeError(
                f"{name}: expected a context of shape (batch, time, {self.context_features}), "
                f"got {context.shape}"
            )
        if mask is not None and mask.shape != context.shape[:2]:
            raise ShapeError(
                f"{name}: expected a mask of shape {context.shape[:2]}, as the context, got "
                f"{mask.shape}"
            )
        key, value = ops.split(self.split_heads(self.key_value(context)), 2, axis=1)
        return key, value, mask

    def look_up(self, x: Tensor, memory: Memory, attention_mask: Tensor | None = None) -> Tensor:
        """Attend to a context that `read` has processed.

        Args:
            x: Input, (batch, time, features).
            memory: The result of `read`.
            attention_mask: As in `forward`.
        """
        key, value, mask = memory
        query = self.split_heads(self.query(x))
        return self.merge_heads(self.attend(query, key, value, combine_masks(mask, attention_mask)))
