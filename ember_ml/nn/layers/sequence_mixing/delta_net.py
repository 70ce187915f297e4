"""DeltaNet and gated DeltaNet."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense, bias_of
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.ops import matmul
from ember_ml.ops.random import default_generator
from ember_ml.registry import register


@register("layers/delta_net", aliases=["deltanet", "delta-net"])
class DeltaNet(SequenceMixer):
    r"""Linear attention with the delta rule: the state is corrected towards each new value.

    .. math:: S_t = S_{t-1} + \beta_t k_t (v_t - S_{t-1}^\top k_t)^\top, \quad
        y_t = W_o \, \mathrm{RMSNorm}(S_t^\top q_t / \sqrt{d})

    .. math:: q, k = \frac{\mathrm{silu}(W x)}{\| \mathrm{silu}(W x) \|}, \quad
        v = \mathrm{silu}(W_v x), \quad \beta = \sigma(W_\beta x)

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 1.
        eps: Value added to the mean square of the RMSNorm. Default: 1e-5.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence
    Length", 2024.

    Example:
        >>> layer = nn.layers.sequence_mixing.DeltaNet(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 32)
    """

    def __init__(self, features: Size, num_heads: Size = 1, eps: Positive = 1e-5) -> None:
        require_divisible(self, features=features, num_heads=num_heads)
        self.features = features
        self.num_heads = num_heads
        self.head_features = features // num_heads
        self.qkv = Dense(features, 3 * features, bias=False)
        self.rate = Dense(features, num_heads, bias=False)
        self.norm = RMSNorm(self.head_features, eps)
        self.out = Dense(features, features, bias=False)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: one matrix per head."""
        return self.features * self.head_features

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads."""
        columns = {"qkv": Split(0, blocks=3), "rate": Split(0)}
        return split_between(columns, "out", sizes=("num_heads",), shared=("norm",))

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mix the sequence."""
        parts = ops.split(ops.silu(self.qkv(x)), 3, axis=-1)
        rate, decay = ops.sigmoid(self.rate(x)), self.log_decay(x)
        parts.append(mask_padding(rate, mask))
        if decay is not None:
            parts.append(mask_padding(decay, mask))
        query, key, *rest = (_chunked.split_heads(part, self.num_heads) for part in parts)
        query, key = self._normalize(query, key)
        y, after = _chunked.correct(query, key, *rest, state=state)
        return self.read_out(ops.astype(ops.permute_dims(y, (0, 2, 1, 3)), x.dtype), x), after

    def initial_state(self, batch: int) -> Tensor:
        """Return the state before the first position: zeros."""
        size = self.head_features
        return _chunked.zero_state(self.out.weight, batch, self.num_heads, size, size)

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        parts = (*ops.split(ops.silu(self.qkv(x)), 3, axis=-1), ops.sigmoid(self.rate(x)))
        query, key, value, rate = (
            _chunked.split_heads_step(part, self.num_heads) for part in parts
        )
        query, key = self._normalize(query, key)
        decay = self.log_decay(x)
        if decay is not None:
            decay = _chunked.split_heads_step(decay, self.num_heads)
            state = ops.exp(ops.maximum(decay, _chunked.MIN_LOG_DECAY))[..., None] * state
        error = value - matmul(key[..., None, :], state)[..., 0, :]
        y, state = _chunked.step(query, key, rate * error, state)
        return self.read_out(ops.astype(y, x.dtype), x), state

    def log_decay(self, x: Tensor) -> Tensor | None:
        """Return the log decay of each head, (..., heads), or None without decay."""
        return None

    def read_out(self, y: Tensor, x: Tensor) -> Tensor:
        """Normalize and project the heads, (..., heads, head features)."""
        return self.out(ops.reshape(self.norm(y), (*x.shape[:-1], self.out.in_features)))

    def _normalize(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        scale = 1.0 / math.sqrt(self.head_features)
        return ops.l2_normalize(query) * scale, ops.l2_normalize(key)


@register("layers/gated_delta_net", aliases=["gated-delta-net"])
class GatedDeltaNet(DeltaNet):
    r"""DeltaNet with a data-dependent decay of the state and an output gate.

    .. math:: S_t = \alpha_t S_{t-1} + \beta_t k_t (v_t - \alpha_t S_{t-1}^\top k_t)^\top, \quad
        \alpha_t = \exp(-e^{a} \, \mathrm{softplus}(W_\alpha x_t + b))

    .. math:: y_t = W_o (\mathrm{RMSNorm}(S_t^\top q_t / \sqrt{d}) \odot \mathrm{silu}(W_g x_t))

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 1.
        eps: Value added to the mean square of the RMSNorm. Default: 1e-5.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024.

    Example:
        >>> nn.layers.sequence_mixing.GatedDeltaNet(8, num_heads=2)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(self, features: Size, num_heads: Size = 1, eps: Positive = 1e-5) -> None:
        super().__init__(features, num_heads, eps)
        self.gate = Dense(features, features, bias=False)
        self.decay = Dense(features, num_heads)
        rng = default_generator()
        steps = ops.exp(rng.uniform((num_heads,), math.log(0.001), math.log(0.1)))
        bias_of(self.decay).assign(ops.log(ops.expm1(steps)))
        self.log_speed = Parameter(ops.log(rng.uniform((num_heads,), 1.0, 16.0)), decay=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads."""
        even = dict.fromkeys(("rate", "gate", "decay"), Split(0))
        return split_between(
            {"qkv": Split(0, blocks=3), **even},
            "out",
            sizes=("num_heads",),
            splits={"log_speed": Split(0)},
            shared=("norm",),
        )

    def log_decay(self, x: Tensor) -> Tensor | None:
        """Return the log decay of each head, (..., heads)."""
        speed = ops.exp(upcast_half(self.log_speed))
        return -speed * ops.softplus(upcast_half(self.decay(x)))

    def read_out(self, y: Tensor, x: Tensor) -> Tensor:
        """Normalize, gate and project the heads, (..., heads, head features)."""
        gate = self.gate(x)
        return self.out(ops.reshape(self.norm(y, ops.reshape(gate, y.shape)), gate.shape))
