"""The delta rule, and its gated form."""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer
from ember_ml.nn.parameter import Parameter
from ember_ml.ops import matmul, matrix_transpose
from ember_ml.ops.random import default_generator
from ember_ml.registry import register


@register("layers/delta_net", aliases=["deltanet", "delta-net"])
class DeltaNet(SequenceMixer):
    r"""Linear attention whose state is corrected towards each value where its key points.

    .. math:: S_t = S_{t-1} + \beta_t k_t (v_t - S_{t-1}^\top k_t)^\top, \quad
        y_t = W_o \, \mathrm{RMSNorm}(S_t^\top q_t / \sqrt{d})

    .. math:: q, k = \frac{\mathrm{silu}(W x)}{\| \mathrm{silu}(W x) \|}, \quad
        v = \mathrm{silu}(W_v x), \quad \beta = \sigma(W_\beta x)

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        eps: of the norm.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Yang et al., "Parallelizing Linear Transformers with the Delta Rule over Sequence
    Length", 2024.

    Example:
        >>> layer = nn.layers.sequence_mixing.DeltaNet(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 32)
    """

    def __init__(self, features: Size, num_heads: Size = 1, eps: Positive = 1e-5) -> None:
        size = _chunked.head_size(type(self).__name__, features, num_heads)
        self.features = features
        self.num_heads = num_heads
        self.qkv = Dense(features, 3 * features, bias=False)
        self.rate = Dense(features, num_heads, bias=False)
        self.norm = RMSNorm(size, eps)
        self.out = Dense(features, features, bias=False)

    @property
    def state_size(self) -> int:
        """A matrix of each head."""
        return self.features * (self.features // self.num_heads)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if not x.shape[1]:
            return x
        parts = ops.split(ops.silu(self.qkv(x)), 3, axis=-1)
        rate, decay = ops.sigmoid(self.rate(x)), self.decay_of(x)
        parts.append(_chunked.shown(rate, mask))
        if decay is not None:
            parts.append(_chunked.shown(decay, mask))
        query, key, *rest = (_chunked.heads(part, self.num_heads) for part in parts)
        y = _delta(*self._scaled(query, key), *rest)
        return self.gated(ops.astype(ops.permute_dims(y, (0, 2, 1, 3)), x.dtype), x)

    def initial_state(self, batch: int) -> Any:
        """The state before the first position: zeros."""
        size = self.features // self.num_heads
        return _chunked.zeros(self.out.weight, batch, self.num_heads, size, size)

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The output of one position, and the state after it."""
        self.check_features(x, self.features)
        parts = (*ops.split(ops.silu(self.qkv(x)), 3, axis=-1), ops.sigmoid(self.rate(x)))
        query, key, value, rate = (_chunked.rows(part, self.num_heads) for part in parts)
        query, key = self._scaled(query, key)
        decay = self.decay_of(x)
        if decay is not None:
            decay = ops.maximum(_chunked.rows(decay, self.num_heads), _chunked.LEAST)
            state = ops.exp(decay)[..., None] * state
        missing = value - matmul(key[..., None, :], state)[..., 0, :]
        y, state = _chunked.step(query, key, rate * missing, state)
        return self.gated(ops.astype(y, x.dtype), x), state

    def decay_of(self, x: Tensor) -> Tensor | None:
        """The logarithm of each head's decay, (..., heads); None if nothing decays."""
        return None

    def gated(self, y: Tensor, x: Tensor) -> Tensor:
        """What the heads, (..., heads, features of a head), give to the output."""
        return self.out(ops.reshape(self.norm(y), x.shape))

    def _scaled(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        size = self.features // self.num_heads
        return ops.l2_normalize(query) * (1.0 / math.sqrt(size)), ops.l2_normalize(key)


def _delta(
    query: Tensor, key: Tensor, value: Tensor, rate: Tensor, decay: Tensor | None = None
) -> Tensor:
    """The delta rule over a sequence in chunks: (batch, heads, time, features of a head).

    In a chunk the corrections depend on each other through a triangular system. Solved once for
    the values and once for the keys, it gives the corrections for any state that enters.
    """
    time, size = query.shape[2], _chunked.chunk_length(query.shape[2], query.shape[3])
    parts = [_chunked.chunked(part, size) for part in (query, key, value, rate)]
    q, k, v, rate = parts
    decay = ops.zeros_like(rate) if decay is None else _chunked.chunked(decay, size)
    total, _ = _chunked.summed(ops.maximum(decay, _chunked.LEAST), strict=False)
    fading = _chunked.head_decay(total, total, strict=False)
    system = matmul(rate * k, matrix_transpose(k)) * fading
    first = k * ops.exp(total)
    solved = ops.linalg.solve_triangular(
        system, ops.concat([rate * v, rate * first], axis=-1), unit_diagonal=True
    )
    values, keys = ops.split(solved, [v.shape[-1]], axis=-1)
    seen = matmul(q, matrix_transpose(k)) * fading
    last = total[..., -1:, :]
    left = matrix_transpose(k * ops.exp(last - total))
    chunks = (values, keys, seen, q * ops.exp(total), left, ops.exp(last))
    y = _over_chunks([ops.unstack(part, 2) for part in chunks])
    return ops.reshape(y, (*y.shape[:2], -1, y.shape[-1]))[:, :, :time]


def _over_chunks(parts: list[Any]) -> Tensor:
    """Chunk after chunk, with the state that the ones before leave behind."""
    state: Tensor | None = None
    outputs = []
    for value, key, seen, query, left, decay in zip(*parts, strict=True):
        value = value if state is None else value - matmul(key, state)
        output = matmul(seen, value)
        outputs.append(output if state is None else output + matmul(query, state))
        entry = matmul(left, value)
        state = entry if state is None else decay * state + entry
    return ops.stack(outputs, axis=2)


@register("layers/gated_delta_net", aliases=["gated-delta-net"])
class GatedDeltaNet(DeltaNet):
    r"""The delta rule with a state that decays as the input says, and a gate at the output.

    .. math:: S_t = \alpha_t S_{t-1} + \beta_t k_t (v_t - \alpha_t S_{t-1}^\top k_t)^\top, \quad
        \alpha_t = \exp(-e^{a} \, \mathrm{softplus}(W_\alpha x_t + b))

    .. math:: y_t = W_o (\mathrm{RMSNorm}(S_t^\top q_t / \sqrt{d}) \odot \mathrm{silu}(W_g x_t))

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        eps: of the norm.

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
        self.decay.bias.assign(ops.log(ops.expm1(steps)))  # type: ignore[union-attr]
        self.log_speed = Parameter(ops.log(rng.uniform((num_heads,), 1.0, 16.0)), decay=False)

    def decay_of(self, x: Tensor) -> Tensor | None:
        """The logarithm of each head's decay, (..., heads)."""
        speed = ops.exp(_chunked.wide(self.log_speed))
        return -speed * ops.softplus(_chunked.wide(self.decay(x)))

    def gated(self, y: Tensor, x: Tensor) -> Tensor:
        """What the heads, (..., heads, features of a head), give to the output."""
        return self.out(ops.reshape(self.norm(y), x.shape) * ops.silu(self.gate(x)))
