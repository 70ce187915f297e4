"""Causal attention to a window of positions."""

from __future__ import annotations

from ember_ml.configs.fields import Below1, PositionEncoding, Positive, Size
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import SelfAttention
from ember_ml.registry import register


@register("layers/sliding_attention", aliases=["sliding-attention", "sliding_window_attention"])
class SlidingWindowAttention(SelfAttention):
    r"""Each position attends to itself and a number of positions before.

    .. math:: y_t = W_o \sum_{t - w \le s \le t} \mathrm{softmax}_s\!\left(\frac{q_t \cdot k_s}
        {\sqrt{d}}\right) v_s

    Going step by step, the state is of constant size: the keys and values of the window.

    Args:
        features: how many there are.
        num_heads: how many heads of queries share the features.
        window: w, how many positions before a position it attends to.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        positions: "rope", "alibi" or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Beltagy et al., "Longformer", 2020.

    Example:
        >>> layer = nn.layers.sequence_mixing.SlidingWindowAttention(8, num_heads=2, window=3)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 64)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 1,
        window: Size = 32,
        num_kv_heads: Size | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(
            features, num_heads, num_kv_heads, True, window, positions, rope_base, bias, dropout
        )


@register("layers/mh_sliding_attention", aliases=["mh-sliding-attention"])
class MultiHeadSlidingWindowAttention(SlidingWindowAttention):
    r"""Attention to a window of positions, in 16 heads.

    .. math:: y_{t,h} = \sum_{t - w \le s \le t} \mathrm{softmax}_s\!\left(\frac{q_{t,h} \cdot
        k_{s,h}}{\sqrt{d}}\right) v_{s,h}

    Args:
        features: how many there are.
        num_heads: how many heads of queries share the features.
        window: w, how many positions before a position it attends to.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        positions: "rope", "alibi" or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        dropout: the share of the weights that training drops.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Beltagy et al., "Longformer", 2020.

    Example:
        >>> layer = nn.layers.sequence_mixing.MultiHeadSlidingWindowAttention(32, window=3)
        >>> layer(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 16,
        window: Size = 32,
        num_kv_heads: Size | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(
            features, num_heads, window, num_kv_heads, positions, rope_base, bias, dropout
        )
