"""The time mixers of RWKV 5 and 6."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.norms import GroupNorm
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, zeros_beside
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


def shifted(x: Tensor) -> Tensor:
    """The position before each, and zeros before the first: (batch, time, features)."""
    first = ops.zeros_like(x[:, :1])
    return ops.concat([first, x[:, :-1]], axis=1)


def shares(features: int, power: float) -> list[float]:
    """How much of each feature comes from the position before, at first: from 1 down to 0."""
    return [1.0 - (feature / features) ** power for feature in range(features)]


def decay_rates(features: int) -> list[float]:
    """The first logarithms of the rates of decay, from slow to fast: -6 to -1."""
    last = max(features - 1, 1)
    return [-6.0 + 5.0 * (feature / last) ** 0.7 for feature in range(features)]


def bonuses(features: int, num_heads: int) -> Tensor:
    """The first weights of a position's own key and value: 0, 0.1, -0.1 in turn."""
    first = [((feature + 1) % 3 - 1) * 0.1 for feature in range(features)]
    return ops.reshape(ops.array(first, dtype="float32"), (num_heads, -1))


class TimeMixer(SequenceMixer):
    """What the time mixers share: the heads with their states, the norm and the gate.

    Subclasses write `project`.
    """

    def __init__(self, features: int, num_heads: int, eps: float) -> None:
        _chunked.head_size(type(self).__name__, features, num_heads)
        self.features = features
        self.num_heads = num_heads
        self.bonus = Parameter(bonuses(features, num_heads), decay=False)
        self.receptance = Dense(features, features, bias=False)
        self.key = Dense(features, features, bias=False)
        self.value = Dense(features, features, bias=False)
        self.gate = Dense(features, features, bias=False)
        self.norm = GroupNorm(num_heads, features, eps)
        self.out = Dense(features, features, bias=False)

    @property
    def state_size(self) -> int:
        """A matrix of each head, and the position before."""
        return self.features * (self.features // self.num_heads + 1)

    def project(self, x: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        """Receptance, key, value, gate and the logarithm of the decay.

        Args:
            x: (..., features).
            before: the positions before, in the same shape.
        """
        raise NotImplementedError

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if not x.shape[1]:
            return x
        x = _chunked.shown(x, mask)
        receptance, key, value, gate, decay = self.project(x, shifted(x))
        if decay.ndim == 1:  # the same at every position
            decay = decay + ops.zeros_like(_chunked.wide(x[:1]))
        parts = (receptance, _chunked.shown(key, mask), value, _chunked.shown(decay, mask))
        r, k, v, decay = (_chunked.heads(part, self.num_heads) for part in parts)
        y = _chunked.attend(r, k, v, decay, _chunked.wide(self.bonus))
        return self._gated(ops.permute_dims(y, (0, 2, 1, 3)), gate)

    def initial_state(self, batch: int) -> Any:
        """The position before the first and the state of the heads: zeros."""
        size = self.features // self.num_heads
        before = zeros_beside(self.out.weight, (batch, self.features))
        return before, _chunked.zeros(self.out.weight, batch, self.num_heads, size, size)

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The output of one position, and the state after it."""
        self.check_features(x, self.features)
        before, state = state
        *parts, gate, decay = self.project(x, before)
        parts.append(decay[None] if decay.ndim == 1 else decay)
        r, k, v, decay = (_chunked.rows(part, self.num_heads) for part in parts)
        y, state = _chunked.step(r, k, v, state, decay, _chunked.wide(self.bonus))
        return self._gated(y, gate), (x, state)

    def _gated(self, y: Tensor, gate: Tensor) -> Tensor:
        """What the heads, (..., heads, features of a head), give to the output."""
        y = self.norm(ops.reshape(ops.astype(y, gate.dtype), (-1, self.features)))
        return self.out(ops.reshape(y, gate.shape) * ops.silu(gate))


@register("layers/rwkv5_time_mixer", aliases=["rwkv5-time-mixer"])
class RWKV5TimeMixer(TimeMixer):
    r"""The time mixer of RWKV 5: heads whose states decay at learned rates.

    .. math:: y_t = r_t^\top (S_{t-1} + \mathrm{diag}(u) k_t v_t^\top), \quad
        S_t = \mathrm{diag}(e^{-e^w}) S_{t-1} + k_t v_t^\top

    .. math:: o_t = W_o (\mathrm{GroupNorm}(y_t) \odot \mathrm{silu}(g_t)), \quad
        r_t = W_r (x_t + \mu_r \odot (x_{t-1} - x_t)), \dots

    The GroupNorm of y / 8 with an eps of 1e-5, which RWKV has, is that of y with 6.4e-4.

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        eps: of the norm.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> layer = nn.layers.sequence_mixing.RWKV5TimeMixer(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 40)
    """

    def __init__(self, features: Size, num_heads: Size = 8, eps: Positive = 6.4e-4) -> None:
        super().__init__(features, num_heads, eps)
        self.decay = Parameter(decay_rates(features), decay=False)
        self.receptance_share = Parameter(shares(features, 0.5), decay=False)
        self.key_share = Parameter(shares(features, 1.0), decay=False)
        self.value_share = Parameter(shares(features, 1.0), decay=False)
        self.gate_share = Parameter(shares(features, 0.5), decay=False)

    def project(self, x: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        """Receptance, key, value, gate and the logarithm of the decay."""
        return (
            self.receptance(ops.lerp(x, before, self.receptance_share)),
            self.key(ops.lerp(x, before, self.key_share)),
            self.value(ops.lerp(x, before, self.value_share)),
            self.gate(ops.lerp(x, before, self.gate_share)),
            -ops.exp(_chunked.wide(self.decay)),
        )


@register("layers/rwkv6_time_mixer", aliases=["rwkv6-time-mixer"])
class RWKV6TimeMixer(TimeMixer):
    r"""The time mixer of RWKV 6: the input says how the states decay and what is looked back at.

    .. math:: y_t = r_t^\top (S_{t-1} + \mathrm{diag}(u) k_t v_t^\top), \quad
        S_t = \mathrm{diag}(e^{-e^{w_t}}) S_{t-1} + k_t v_t^\top, \quad
        w_t = w + D_2 \tanh(D_1 x^w_t)

    .. math:: x^r_t = x_t + (\mu_r + B_r \tanh(A_r x^0_t)) \odot (x_{t-1} - x_t), \quad
        x^0_t = x_t + \mu_0 \odot (x_{t-1} - x_t)

    Args:
        features: how many there are.
        num_heads: how many heads share them.
        shift_rank: the rank of the maps B A, which say how much to look back.
        decay_rank: the rank of the map to the decays.
        eps: of the norm.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> layer = nn.layers.sequence_mixing.RWKV6TimeMixer(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 40)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 8,
        shift_rank: Size = 32,
        decay_rank: Size = 64,
        eps: Positive = 6.4e-4,
    ) -> None:
        super().__init__(features, num_heads, eps)
        self.share = Parameter(shares(features, 1.0), decay=False)
        self.shift_down = Dense(features, 5 * shift_rank, False, kernel_initializer="zeros")
        self.shift_up = [
            _low_rank_up(shift_rank, shares(features, power)) for power in (0.5, 1.0, 1.0, 0.5, 1.0)
        ]
        self.decay_down = Dense(features, decay_rank, False, kernel_initializer="zeros")
        self.decay_up = _low_rank_up(decay_rank, decay_rates(features))

    def project(self, x: Tensor, before: Tensor) -> tuple[Tensor, ...]:
        """Receptance, key, value, gate and the logarithm of the decay."""
        low = ops.tanh(self.shift_down(ops.lerp(x, before, self.share)))
        r, k, v, g, w = (
            ops.lerp(x, before, up(part))
            for up, part in zip(self.shift_up, ops.split(low, 5, axis=-1), strict=True)
        )
        rate = self.decay_up(ops.tanh(self.decay_down(w)))
        decay = -ops.exp(_chunked.wide(rate))
        return self.receptance(r), self.key(k), self.value(v), self.gate(g), decay


def _low_rank_up(rank: int, bias: list[float]) -> Dense:
    """The second half of a map of low rank: small weights, and a bias to begin with."""
    small = {"type": "uniform", "low": -0.01, "high": 0.01}
    layer = Dense(rank, len(bias), kernel_initializer=small)
    layer.bias.assign(bias)  # type: ignore[union-attr]
    return layer
