"""Gated linear attention."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


@register("layers/gated_linear_attention", aliases=["gated-linear-attention", "gla"])
class GatedLinearAttention(SequenceMixer):
    r"""Gated linear attention: the state decays by a data-dependent factor per key feature.

    .. math:: S_t = \mathrm{diag}(e^{g_t}) S_{t-1} + k_t v_t^\top, \quad
        g_t = \frac{\log \sigma(W_2 W_1 x_t + b)}{\tau}

    .. math:: y_t = W_o \left( \mathrm{RMSNorm}(S_t^\top q_t / \sqrt{d}) \odot
        \mathrm{silu}(W_g x_t) \right)

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 1.
        gate_rank: Rank of the projection to the decays. Default: 16.
        gate_divisor: The temperature tau. Larger values make the state decay more slowly.
            Default: 16.
        eps: Value added to the mean square of the RMSNorm. Default: 1e-5.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Yang et al., "Gated Linear Attention Transformers with Hardware-Efficient Training",
    2024.

    Example:
        >>> layer = nn.layers.sequence_mixing.GatedLinearAttention(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 32)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 1,
        gate_rank: Size = 16,
        gate_divisor: Positive = 16.0,
        eps: Positive = 1e-5,
    ) -> None:
        require_divisible(self, features=features, num_heads=num_heads)
        self.features = features
        self.num_heads = num_heads
        self.head_features = features // num_heads
        self.gate_divisor = gate_divisor
        self.qkvg = Dense(features, 4 * features, bias=False)
        self.decay_down = Dense(features, gate_rank, bias=False)
        self.decay_up = Dense(gate_rank, features)
        self.norm = RMSNorm(self.head_features, eps)
        self.out = Dense(features, features, bias=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads."""
        columns = {"qkvg": Split(0, blocks=4), "decay_up": Split(0)}
        return split_between(columns, "out", sizes=("num_heads",), shared=("norm",))

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: one matrix per head."""
        return self.features * self.head_features

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mix the sequence."""
        query, key, value, gate, decay = self._project(x)
        parts = (query, mask_padding(key, mask), value, mask_padding(decay, mask))
        query, key, value, decay = (_chunked.split_heads(part, self.num_heads) for part in parts)
        y, state = _chunked.attend(query, key, value, decay, state=state)
        return self._read_out(ops.permute_dims(y, (0, 2, 1, 3)), gate), state

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first position: zeros."""
        size = self.head_features
        return _chunked.zero_state(self.out.weight, batch, self.num_heads, size, size)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        query, key, value, gate, decay = self._project(x)
        query, key, value, decay = (
            _chunked.split_heads_step(part, self.num_heads) for part in (query, key, value, decay)
        )
        y, state = _chunked.step(query, key, value, state, decay)
        return self._read_out(y, gate), state

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return queries, keys, values, gates and log decays."""
        query, key, value, gate = ops.split(self.qkvg(x), 4, axis=-1)
        query = query * (1.0 / math.sqrt(self.head_features))
        decay = ops.log_sigmoid(self.decay_up(self.decay_down(x))) * (1.0 / self.gate_divisor)
        return query, key, value, gate, decay

    def _read_out(self, y: Tensor, gate: Tensor) -> Tensor:
        """Normalize, gate and project the heads, (..., heads, head features)."""
        y = self.norm(ops.astype(y, gate.dtype), ops.reshape(gate, y.shape))
        return self.out(ops.reshape(y, gate.shape))


@register("layers/mh_gated_linear_attention", aliases=["mh-gated-linear-attention", "mh-gla"])
class MultiHeadGatedLinearAttention(GatedLinearAttention):
    r"""Gated linear attention with 8 heads by default.

    .. math:: S_{t,h} = \mathrm{diag}(e^{g_{t,h}}) S_{t-1,h} + k_{t,h} v_{t,h}^\top

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 8.
        gate_rank: Rank of the projection to the decays. Default: 16.
        gate_divisor: Temperature of the decays. Larger values make the state decay more slowly.
            Default: 16.
        eps: Value added to the mean square of the RMSNorm. Default: 1e-5.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Yang et al., "Gated Linear Attention Transformers with Hardware-Efficient Training",
    2024.

    Example:
        >>> layer = nn.layers.sequence_mixing.MultiHeadGatedLinearAttention(32)
        >>> layer(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 8,
        gate_rank: Size = 16,
        gate_divisor: Positive = 16.0,
        eps: Positive = 1e-5,
    ) -> None:
        super().__init__(features, num_heads, gate_rank, gate_divisor, eps)
