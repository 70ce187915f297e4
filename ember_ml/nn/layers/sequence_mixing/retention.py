"""Retention."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.registry import register


@register("layers/retention", aliases=["retnet"])
class Retention(SequenceMixer):
    r"""Linear attention whose heads decay at fixed rates, each its own.

    .. math:: S_t = \gamma S_{t-1} + k_t v_t^\top, \quad \gamma_h = 1 - 2^{-5 - h}

    .. math:: y_t = W_o (\mathrm{RMSNorm}(S_t^\top q_t) \odot \mathrm{silu}(W_g x_t))

    Queries and keys are turned by their positions, and keys divided by the root of their size.

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        value_features: how many the values and the gate have; twice as many if not given.
        rope_base: the base of the angles that positions turn by.
        eps: of the norm, which has no gain.

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
        if features % (2 * num_heads) or values % num_heads:
            raise ArgumentError(
                f"Retention: features={features} must be an even multiple, and value_features="
                f"{values} a multiple of num_heads={num_heads}"
            )
        self.features = features
        self.num_heads = num_heads
        self.value_features = values
        self.rope_base = rope_base
        self.eps = eps
        self.qkvg = Dense(features, 2 * features + 2 * values, bias=False)
        self.out = Dense(values, features, bias=False)

    @property
    def state_size(self) -> int:
        """A matrix of each head."""
        return self.features * self.value_features // self.num_heads

    @property
    def decays(self) -> list[float]:
        """The logarithms of the decays of the heads."""
        return [math.log1p(-(2.0 ** (-5 - head))) for head in range(self.num_heads)]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if not x.shape[1]:
            return x
        query, key, value, gate = self._project(x)
        parts = (query, _chunked.shown(key, mask), value)
        query, key, value = (_chunked.heads(part, self.num_heads) for part in parts)
        query, key = (ops.rope(part, base=self.rope_base) for part in (query, key))
        decay = self._decay(query, mask)
        y = _chunked.attend(query, key, value, decay)
        return self._gated(ops.permute_dims(y, (0, 2, 1, 3)), gate)

    def initial_state(self, batch: int) -> Any:
        """The state before the first position, zeros, and the position of the next step."""
        weight = self.out.weight
        sizes = self.features // self.num_heads, self.value_features // self.num_heads
        position = convert_to_tensor([0] * batch, dtype="int64", backend=weight.backend)
        return _chunked.zeros(weight, batch, self.num_heads, *sizes), position

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The output of one position, and the state after it."""
        self.check_features(x, self.features)
        state, position = state
        *parts, gate = self._project(x)
        query, key, value = (_chunked.rows(part, self.num_heads) for part in parts)
        query, key = (  # the heads stand where rope has time, so that each has the position
            ops.rope(part, position[:, None], base=self.rope_base) for part in (query, key)
        )
        decay = self._decay(query[:, :, None], None)[:, :, 0]
        y, state = _chunked.step(query, key, value, state, decay)
        return self._gated(y, gate), (state, position + 1)

    def _project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys, values and gates."""
        keys, values = self.features, self.value_features
        cuts = [keys, 2 * keys, 2 * keys + values]
        query, key, value, gate = ops.split(self.qkvg(x), cuts, axis=-1)
        return query, key * (1.0 / math.sqrt(keys // self.num_heads)), value, gate

    def _decay(self, like: Tensor, mask: Tensor | None) -> Tensor:
        """The logarithms of the decays: (batch or 1, heads, time, 1)."""
        one = like[:1, 0, :, :1]
        decay = ops.stack([ops.full_like(one, rate) for rate in self.decays], axis=1)
        if mask is None:
            return decay
        return ops.where(ops.astype(mask, bool_)[:, None, :, None], decay, 0.0)

    def _gated(self, y: Tensor, gate: Tensor) -> Tensor:
        """What the heads, (..., heads, features of a head), give to the output."""
        y = ops.astype(ops.rms_norm(y, eps=self.eps), gate.dtype)
        return self.out(ops.reshape(y, gate.shape) * ops.silu(gate))
