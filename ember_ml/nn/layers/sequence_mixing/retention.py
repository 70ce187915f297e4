"""Retention."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    TensorPair,
    mask_padding,
    positions_after,
    real_lengths,
)
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


@register("layers/retention", aliases=["retnet"])
class Retention(SequenceMixer):
    r"""Retention: linear attention with a fixed decay rate per head.

    .. math:: S_t = \gamma S_{t-1} + k_t v_t^\top, \quad \gamma_h = 1 - 2^{-5 - h}

    .. math:: y_t = W_o (\mathrm{RMSNorm}(S_t^\top q_t) \odot \mathrm{silu}(W_g x_t))

    Queries and keys have rotary position embeddings; keys are divided by the square root of their
    size.

    Args:
        features: Number of input and output features. Must be divisible by 2 * num_heads.
        num_heads: Number of heads. Default: 4.
        value_features: Number of features of the values and the gate. Must be divisible by
            num_heads. Default: 2 times the features.
        rope_base: Base of the angles of the rotary embeddings. Default: 10000.
        eps: Value added to the mean square of the RMSNorm, which has no scale. Default: 1e-5.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Sun et al., "Retentive Network: A Successor to Transformer for Large Language
    Models", 2023.

    Example:
        >>> layer = nn.layers.sequence_mixing.Retention(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 64)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 4,
        value_features: Size | None = None,
        rope_base: Positive = 10000.0,
        eps: Positive = 1e-5,
    ) -> None:
        values = value_features or 2 * features
        require_divisible(self, features=features, **{"2 * num_heads": 2 * num_heads})
        require_divisible(self, value_features=values, num_heads=num_heads)
        self.features = self.key_features = features
        self.num_heads, self.first_head = num_heads, 0
        self.value_features = values
        self.rope_base = rope_base
        self.eps = eps
        self.qkvg = Dense(features, 2 * features + 2 * values, bias=False)
        self.out = Dense(values, features, bias=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads."""
        keys, values = self.key_features, self.value_features
        return split_between(
            {"qkvg": Split(0, sizes=(keys, keys, values, values))},
            "out",
            sizes=("num_heads", "key_features", "value_features"),
            offsets={"first_head": "num_heads"},
        )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: one matrix per head."""
        return self.key_features * self.value_features // self.num_heads

    @property
    def decays(self) -> list[float]:
        """Log decay of each head."""
        heads = range(self.first_head, self.first_head + self.num_heads)
        return [math.log1p(-(2.0 ** (-5 - head))) for head in heads]

    def mix(
        self, x: Tensor, mask: Tensor | None, state: TensorPair | None
    ) -> tuple[Tensor, TensorPair | None]:
        """Mix the sequence."""
        memory, position = state or (None, None)
        query, key, value, gate = self._project(x)
        parts = (query, mask_padding(key, mask), value)
        query, key, value = (_chunked.split_heads(part, self.num_heads) for part in parts)
        places = None if position is None else positions_after(position, x.shape[1])[:, None]
        query, key = (ops.rope(part, places, base=self.rope_base) for part in (query, key))
        decay = self._log_decay(query, mask)
        y, memory = _chunked.attend(query, key, value, decay, state=memory)
        y = self._read_out(ops.permute_dims(y, (0, 2, 1, 3)), gate)
        if memory is None or position is None:
            return y, None
        return y, (memory, position + (x.shape[1] if mask is None else real_lengths(mask)))

    def initial_state(self, batch: int) -> TensorPair:
        """Return the state before the first position, zeros, and the position of the next step."""
        weight = self.out.weight
        sizes = self.key_features // self.num_heads, self.value_features // self.num_heads
        device, backend = weight.device, weight.backend
        position = convert_to_tensor([0] * batch, dtype="int64", device=device, backend=backend)
        return _chunked.zero_state(weight, batch, self.num_heads, *sizes), position

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        memory, position = state
        *parts, gate = self._project(x)
        query, key, value = (_chunked.split_heads_step(part, self.num_heads) for part in parts)
        query, key = (  # the heads take the time axis of rope; all have the same position
            ops.rope(part, position[:, None], base=self.rope_base) for part in (query, key)
        )
        decay = self._log_decay(query[:, :, None], None)[:, :, 0]
        y, memory = _chunked.step(query, key, value, memory, decay)
        return self._read_out(y, gate), (memory, position + 1)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return queries, keys, values and gates."""
        keys, values = self.key_features, self.value_features
        boundaries = [keys, 2 * keys, 2 * keys + values]
        query, key, value, gate = ops.split(self.qkvg(x), boundaries, axis=-1)
        return query, key * (1.0 / math.sqrt(keys // self.num_heads)), value, gate

    def _log_decay(self, like: Tensor, mask: Tensor | None) -> Tensor:
        """Return the log decays, zero at padding, (batch or 1, heads, time, 1)."""
        one = like[:1, 0, :, :1]
        decay = ops.stack([ops.full_like(one, rate) for rate in self.decays], axis=1)
        if mask is None:
            return decay
        return ops.where(ops.astype(mask, bool_)[:, None, :, None], decay, 0.0)

    def _read_out(self, y: Tensor, gate: Tensor) -> Tensor:
        """Normalize, gate and project the heads, (..., heads, head features)."""
        y = ops.astype(ops.rms_norm(y, eps=self.eps), gate.dtype)
        return self.out(ops.silu_gate(ops.reshape(y, gate.shape), gate))
