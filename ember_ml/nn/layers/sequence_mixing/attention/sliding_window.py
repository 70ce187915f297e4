"""Sliding window attention."""

from __future__ import annotations

from ember_ml.configs.fields import Below1, PositionEncoding, Positive, Size
from ember_ml.nn.layers.sequence_mixing.attention.self_attention import SelfAttention
from ember_ml.registry import register


@register("layers/sliding_attention", aliases=["sliding-attention", "sliding_window_attention"])
class SlidingWindowAttention(SelfAttention):
    r"""Sliding window attention: each position attends to itself and `window` earlier positions.

    .. math:: y_t = W_o \sum_{t - w \le s \le t} \mathrm{softmax}_s\!\left(\frac{q_t \cdot k_s}
        {\sqrt{d}}\right) v_s

    The state of `step` has constant size: the keys and values of the window.

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 1.
        window: Number of earlier positions w that each position attends to. Default: 32.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        positions: Position encoding: "rope", "alibi" or "none". Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Beltagy et al., "Longformer", 2020.

    Example:
        >>> layer = nn.layers.sequence_mixing.SlidingWindowAttention(8, num_heads=2, window=3)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 48)
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
    r"""Sliding window attention with 16 heads by default.

    .. math:: y_{t,h} = \sum_{t - w \le s \le t} \mathrm{softmax}_s\!\left(\frac{q_{t,h} \cdot
        k_{s,h}}{\sqrt{d}}\right) v_{s,h}

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 16.
        window: Number of earlier positions w that each position attends to. Default: 32.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        positions: Position encoding: "rope", "alibi" or "none". Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

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
