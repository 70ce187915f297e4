"""Linear attention."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


@register("layers/linear_attention", aliases=["linear-attention"])
class LinearAttention(SequenceMixer):
    r"""Linear attention: the scores are products of feature maps of queries and keys.

    .. math:: y_t = W_o \frac{\sum_{s \le t} (\phi(q_t) \cdot \phi'(k_s)) \, v_s}
        {\phi(q_t) \cdot \sum_{s \le t} \phi'(k_s) + \epsilon}, \quad
        \phi(x) = (A x + a) \odot (B x + b)

    The heads share the maps phi and phi'. The two sums are the state. The feature maps can be
    negative, so the denominator can be close to zero. The output is then large and sensitive to
    rounding.

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 1.
        eps: Value added to the denominator. Default: 1e-12.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Katharopoulos et al., "Transformers are RNNs", 2020.

    Example:
        >>> layer = nn.layers.sequence_mixing.LinearAttention(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 40)
    """

    def __init__(self, features: Size, num_heads: Size = 1, eps: Positive = 1e-12) -> None:
        require_divisible(self, features=features, num_heads=num_heads)
        self.features = features
        self.num_heads = num_heads
        self.head_features = features // num_heads
        self.eps = eps
        self.qkv = Dense(features, 3 * features, bias=False)
        self.query_map = Dense(self.head_features, 2 * self.head_features)
        self.key_map = Dense(self.head_features, 2 * self.head_features)
        self.out = Dense(features, features, bias=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads, which share the feature maps."""
        maps = ("query_map", "key_map")
        return split_between({"qkv": Split(0, blocks=3)}, "out", sizes=("num_heads",), shared=maps)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: numerator and denominator."""
        return self.features * (self.head_features + 1)

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mix the sequence."""
        query, key, value = self._project(x)
        parts = (query, mask_padding(key, mask), value)
        query, key, value = (_chunked.split_heads(part, self.num_heads) for part in parts)
        sums, state = _chunked.attend(query, key, _append_one(value), state=state)
        y = ops.permute_dims(self._divide(sums), (0, 2, 1, 3))
        y = ops.reshape(y, (*x.shape[:-1], self.out.in_features))
        return self.out(ops.astype(y, x.dtype)), state

    def initial_state(self, batch: int) -> Tensor:
        """Return the sums before the first position: zeros."""
        size = self.head_features
        return _chunked.zero_state(self.out.weight, batch, self.num_heads, size, size + 1)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        parts = self._project(x)
        query, key, value = (_chunked.split_heads_step(part, self.num_heads) for part in parts)
        sums, state = _chunked.step(query, key, _append_one(value), state)
        y = ops.reshape(self._divide(sums), (x.shape[0], self.out.in_features))
        return self.out(ops.astype(y, x.dtype)), state

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the feature maps of queries and keys, and the values."""
        query, key, value = ops.split(self.qkv(x), 3, axis=-1)
        return self._map(query, self.query_map), self._map(key, self.key_map), value

    def _map(self, x: Tensor, feature_map: Dense) -> Tensor:
        """Apply phi to each head."""
        pairs = feature_map(ops.reshape(x, (*x.shape[:-1], self.num_heads, self.head_features)))
        first, second = ops.split(pairs, 2, axis=-1)
        return ops.reshape(first * second, x.shape)

    def _divide(self, sums: Tensor) -> Tensor:
        numerator, denominator = ops.split(sums, [sums.shape[-1] - 1], axis=-1)
        return numerator / (denominator + self.eps)


def _append_one(value: Tensor) -> Tensor:
    """Append a 1 to each value; its weighted sum is the denominator."""
    return ops.concat([value, ops.ones_like(value[..., :1])], axis=-1)


@register("layers/mh_linear_attention", aliases=["mh-linear-attention"])
class MultiHeadLinearAttention(LinearAttention):
    r"""Linear attention with 16 heads by default.

    .. math:: y_{t,h} = \frac{\sum_{s \le t} (\phi(q_{t,h}) \cdot \phi'(k_{s,h})) \, v_{s,h}}
        {\phi(q_{t,h}) \cdot \sum_{s \le t} \phi'(k_{s,h}) + \epsilon}

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 16.
        eps: Value added to the denominator. Default: 1e-12.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Katharopoulos et al., "Transformers are RNNs", 2020.

    Example:
        >>> nn.layers.sequence_mixing.MultiHeadLinearAttention(32)(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(self, features: Size, num_heads: Size = 16, eps: Positive = 1e-12) -> None:
        super().__init__(features, num_heads, eps)
