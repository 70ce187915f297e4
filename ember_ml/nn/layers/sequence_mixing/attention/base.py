"""What all attention has: heads, and weights that are a softmax of products."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer


class BaseAttention(SequenceMixer):
    """Heads of queries, keys and values, and the map of what they found back to features.

    Subclasses say where the queries, keys and values come from.

    Args:
        features: how many there are.
        num_heads: how many heads of queries share them.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.
    """

    def __init__(
        self, features: int, num_heads: int, num_kv_heads: int | None, bias: bool, dropout: float
    ) -> None:
        name = type(self).__name__
        if features % num_heads:
            raise ArgumentError(
                f"{name}: features={features} must be a multiple of num_heads={num_heads}"
            )
        if num_kv_heads and num_heads % num_kv_heads:
            raise ArgumentError(
                f"{name}: num_heads={num_heads} must be a multiple of num_kv_heads={num_kv_heads}"
            )
        self.features = features
        self.num_heads = num_heads
        self.num_kv_heads = num_kv_heads or num_heads
        self.head_features = features // num_heads
        self.dropout = dropout
        self.out = Dense(features, features, bias=bias)

    def heads(self, x: Tensor) -> Tensor:
        """(batch, time, heads * head features) -> (batch, heads, time, head features)."""
        shape = (*x.shape[:-1], x.shape[-1] // self.head_features, self.head_features)
        return ops.permute_dims(ops.reshape(x, shape), (0, 2, 1, 3))

    def merged(self, y: Tensor) -> Tensor:
        """(batch, heads, time, head features) -> (batch, time, features), mapped."""
        y = ops.permute_dims(y, (0, 2, 1, 3))
        return self.out(ops.reshape(y, (*y.shape[:2], self.features)))

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
        """What the queries find: (batch, heads, queries, head features)."""
        return ops.scaled_dot_product_attention(
            query,
            key,
            value,
            mask,
            causal=causal,
            window=window,
            dropout=self.dropout if self.training else 0.0,
        )
