"""Linear attention."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.registry import register


@register("layers/linear_attention", aliases=["linear-attention"])
class LinearAttention(SequenceMixer):
    r"""Attention whose weights are products of features of queries and keys.

    .. math:: y_t = W_o \frac{\sum_{s \le t} (\phi(q_t) \cdot \phi'(k_s)) \, v_s}
        {\phi(q_t) \cdot \sum_{s \le t} \phi'(k_s) + \epsilon}, \quad
        \phi(x) = (A x + a) \odot (B x + b)

    The heads share the maps phi and phi'. Both sums are the state. Features may be negative, so the
    denominator can come near zero, where the output is large and depends on the last digits.

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        eps: keeps the denominator from zero.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Katharopoulos et al., "Transformers are RNNs", 2020.

    Example:
        >>> layer = nn.layers.sequence_mixing.LinearAttention(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 40)
    """

    def __init__(self, features: Size, num_heads: Size = 1, eps: Positive = 1e-12) -> None:
        size = _chunked.head_size(type(self).__name__, features, num_heads)
        self.features = features
        self.num_heads = num_heads
        self.eps = eps
        self.qkv = Dense(features, 3 * features, bias=False)
        self.query_map = Dense(size, 2 * size)
        self.key_map = Dense(size, 2 * size)
        self.out = Dense(features, features, bias=False)

    @property
    def state_size(self) -> int:
        """The sums of the numerator and the denominator."""
        size = self.features // self.num_heads
        return self.num_heads * size * (size + 1)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if not x.shape[1]:
            return x
        query, key, value = self._project(x)
        parts = (query, _chunked.shown(key, mask), value)
        query, key, value = (_chunked.heads(part, self.num_heads) for part in parts)
        sums = _chunked.attend(query, key, _with_one(value))
        y = ops.permute_dims(self._divided(sums), (0, 2, 1, 3))
        return self.out(ops.astype(ops.reshape(y, x.shape), x.dtype))

    def initial_state(self, batch: int) -> Any:
        """The sums before the first position: zeros."""
        size = self.features // self.num_heads
        return _chunked.zeros(self.out.weight, batch, self.num_heads, size, size + 1)

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The output of one position, and the sums after it."""
        self.check_features(x, self.features)
        parts = self._project(x)
        query, key, value = (_chunked.rows(part, self.num_heads) for part in parts)
        sums, state = _chunked.step(query, key, _with_one(value), state)
        y = ops.reshape(self._divided(sums), x.shape)
        return self.out(ops.astype(y, x.dtype)), state

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The features of queries and keys, and the values."""
        query, key, value = ops.split(self.qkv(x), 3, axis=-1)
        return self._mapped(query, self.query_map), self._mapped(key, self.key_map), value

    def _mapped(self, x: Tensor, features: Dense) -> Tensor:
        """Phi of each head."""
        size = self.features // self.num_heads
        pairs = features(ops.reshape(x, (*x.shape[:-1], self.num_heads, size)))
        first, second = ops.split(pairs, 2, axis=-1)
        return ops.reshape(first * second, x.shape)

    def _divided(self, sums: Tensor) -> Tensor:
        above, below = ops.split(sums, [sums.shape[-1] - 1], axis=-1)
        return above / (below + self.eps)


def _with_one(value: Tensor) -> Tensor:
    """Values with a 1 beside them, whose weighted sum is the denominator."""
    return ops.concat([value, ops.ones_like(value[..., :1])], axis=-1)


@register("layers/mh_linear_attention", aliases=["mh-linear-attention"])
class MultiHeadLinearAttention(LinearAttention):
    r"""Linear attention in 16 heads.

    .. math:: y_{t,h} = \frac{\sum_{s \le t} (\phi(q_{t,h}) \cdot \phi'(k_{s,h})) \, v_{s,h}}
        {\phi(q_{t,h}) \cdot \sum_{s \le t} \phi'(k_{s,h}) + \epsilon}

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        eps: keeps the denominator from zero.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Katharopoulos et al., "Transformers are RNNs", 2020.

    Example:
        >>> nn.layers.sequence_mixing.MultiHeadLinearAttention(32)(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(self, features: Size, num_heads: Size = 16, eps: Positive = 1e-12) -> None:
        super().__init__(features, num_heads, eps)
