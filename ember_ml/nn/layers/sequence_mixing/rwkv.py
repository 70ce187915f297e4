"""The time mixers of RWKV-5 and RWKV-6."""

from __future__ import annotations

from collections.abc import Mapping

from ember_ml import ops
from ember_ml._core import deferred
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Positive, Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense, bias_of
from ember_ml.nn.layers.channel_mixing.norms import GroupNorm
from ember_ml.nn.layers.sequence_mixing import _chunked
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    TensorPair,
    last_positions,
    mask_padding,
    new_zeros,
)
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


def token_shift(
    x: Tensor, before: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return the previous position of each, (batch, time, features), and the last real position.

    Args:
        x: Sequence, (batch, time, features).
        before: The position before the first, (batch, features). Default: zeros; the second result
            is then None.
        mask: Padding mask, (batch, time), with padding last. Default: no padding.
    """
    if before is None:
        return ops.concat([ops.zeros_like(x[:, :1]), x[:, :-1]], axis=1), None
    before = before[:, None]
    return ops.concat([before, x[:, :-1]], axis=1), last_positions(before, x, mask)[:, 0]


def mixing_coefficients(features: int, power: float) -> list[float]:
    """Return the initial weights of the previous position per feature: from 1 down to 0."""
    deferred.reserve(8 * features, "a list of mixing coefficients")
    return [1.0 - (feature / features) ** power for feature in range(features)]


def log_decay_rates(features: int) -> list[float]:
    """Return the initial logarithms of the decay rates: from -6 (slow) to -1 (fast)."""
    deferred.reserve(8 * features, "a list of decay rates")
    last = max(features - 1, 1)
    return [-6.0 + 5.0 * (feature / last) ** 0.7 for feature in range(features)]


def initial_bonus(features: int, num_heads: int) -> Tensor:
    """Return the initial weights of a position's own key: 0, 0.1, -0.1 in turn."""
    deferred.reserve(8 * features, "a list of weights")
    bonus = [((feature + 1) % 3 - 1) * 0.1 for feature in range(features)]
    return ops.reshape(ops.array(bonus, dtype="float32"), (num_heads, -1))


class TimeMixer(SequenceMixer):
    """Base of the time mixers: heads with matrix states, normalization and gate.

    Subclasses implement `project`.

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`.
        eps: Value added to the variance of the GroupNorm.
    """

    def __init__(self, features: int, num_heads: int, eps: float) -> None:
        require_divisible(self, features=features, num_heads=num_heads)
        self.features = features
        self.num_heads = num_heads
        self.head_features = features // num_heads
        self.bonus = Parameter(initial_bonus(features, num_heads), decay=False)
        self.receptance = Dense(features, features, bias=False)
        self.key = Dense(features, features, bias=False)
        self.value = Dense(features, features, bias=False)
        self.gate = Dense(features, features, bias=False)
        self.norm = GroupNorm(num_heads, features, eps)
        self.out = Dense(features, features, bias=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads."""
        return self.split_by_heads((), {})

    def split_by_heads(self, columns: tuple[str, ...], splits: Mapping[str, Split]) -> TensorSplit:
        """Return the split by heads.

        Args:
            columns: Dense layers of the subclass whose outputs belong to heads.
            splits: Further parameters of the subclass that belong to heads.
        """
        own = dict.fromkeys(("bonus", "norm.weight", "norm.bias"), Split(0))
        return split_between(
            ("receptance", "key", "value", "gate", *columns),
            "out",
            sizes=("num_heads", "norm.num_groups", "norm.features"),
            splits={**own, **splits},
        )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: matrices and the previous input."""
        return self.features * (self.head_features + 1)

    def project(self, x: Tensor, previous: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return receptance, key, value, gate and log decay.

        Args:
            x: Input, (..., features).
            previous: Input at the previous positions, (..., features).
        """
        raise NotImplementedError

    def mix(
        self, x: Tensor, mask: Tensor | None, state: TensorPair | None
    ) -> tuple[Tensor, TensorPair | None]:
        """Mix the sequence."""
        before, memory = state or (None, None)
        x = mask_padding(x, mask)
        previous, last = token_shift(x, before, mask)
        receptance, key, value, gate, decay = self.project(x, previous)
        if decay.ndim == 1:  # the same at every position
            decay = decay + ops.zeros_like(upcast_half(key[:1]))
        parts = (receptance, mask_padding(key, mask), value, mask_padding(decay, mask))
        r, k, v, decay = (_chunked.split_heads(part, self.num_heads) for part in parts)
        y, memory = _chunked.attend(r, k, v, decay, upcast_half(self.bonus), memory)
        y = self._read_out(ops.permute_dims(y, (0, 2, 1, 3)), gate)
        return y, None if last is None or memory is None else (last, memory)

    def initial_state(self, batch: int) -> TensorPair:
        """Return the input before the first position and the matrices of the heads: zeros."""
        size = self.head_features
        previous = new_zeros(self.out.weight, (batch, self.features))
        return previous, _chunked.zero_state(self.out.weight, batch, self.num_heads, size, size)

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        previous, memory = state
        *parts, gate, decay = self.project(x, previous)
        parts.append(decay[None] if decay.ndim == 1 else decay)
        r, k, v, decay = (_chunked.split_heads_step(part, self.num_heads) for part in parts)
        y, memory = _chunked.step(r, k, v, memory, decay, upcast_half(self.bonus))
        return self._read_out(y, gate), (x, memory)

    def _read_out(self, y: Tensor, gate: Tensor) -> Tensor:
        """Normalize, gate and project the heads, (..., heads, head features)."""
        y = self.norm(ops.reshape(ops.astype(y, gate.dtype), (-1, self.norm.features)))
        return self.out(ops.silu_gate(ops.reshape(y, gate.shape), gate))


@register("layers/rwkv5_time_mixer", aliases=["rwkv5-time-mixer"])
class RWKV5TimeMixer(TimeMixer):
    r"""Time mixer of RWKV-5: the states of the heads decay at learned rates.

    .. math:: y_t = r_t^\top (S_{t-1} + \mathrm{diag}(u) k_t v_t^\top), \quad
        S_t = \mathrm{diag}(e^{-e^w}) S_{t-1} + k_t v_t^\top

    .. math:: o_t = W_o (\mathrm{GroupNorm}(y_t) \odot \mathrm{silu}(g_t)), \quad
        r_t = W_r (x_t + \mu_r \odot (x_{t-1} - x_t)), \dots

    The reference implementation normalizes y / 8 with eps = 1e-5. This is equivalent to normalizing
    y with eps = 6.4e-4, the default here.

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 8.
        eps: Value added to the variance of the GroupNorm. Default: 6.4e-4.

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
        self.decay = Parameter(log_decay_rates(features), decay=False)
        self.receptance_share = Parameter(mixing_coefficients(features, 0.5), decay=False)
        self.key_share = Parameter(mixing_coefficients(features, 1.0), decay=False)
        self.value_share = Parameter(mixing_coefficients(features, 1.0), decay=False)
        self.gate_share = Parameter(mixing_coefficients(features, 0.5), decay=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads."""
        return self.split_by_heads((), {"decay": Split(0)})

    def project(self, x: Tensor, previous: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return receptance, key, value, gate and log decay."""
        return (
            self.receptance(ops.lerp(x, previous, self.receptance_share)),
            self.key(ops.lerp(x, previous, self.key_share)),
            self.value(ops.lerp(x, previous, self.value_share)),
            self.gate(ops.lerp(x, previous, self.gate_share)),
            -ops.exp(upcast_half(self.decay)),
        )


@register("layers/rwkv6_time_mixer", aliases=["rwkv6-time-mixer"])
class RWKV6TimeMixer(TimeMixer):
    r"""Time mixer of RWKV-6: decay and token shift depend on the input.

    .. math:: y_t = r_t^\top (S_{t-1} + \mathrm{diag}(u) k_t v_t^\top), \quad
        S_t = \mathrm{diag}(e^{-e^{w_t}}) S_{t-1} + k_t v_t^\top, \quad
        w_t = w + D_2 \tanh(D_1 x^w_t)

    .. math:: x^r_t = x_t + (\mu_r + B_r \tanh(A_r x^0_t)) \odot (x_{t-1} - x_t), \quad
        x^0_t = x_t + \mu_0 \odot (x_{t-1} - x_t)

    Args:
        features: Number of input and output features.
        num_heads: Number of heads. Must divide `features`. Default: 8.
        shift_rank: Rank of the maps B A of the token shift. Default: 32.
        decay_rank: Rank of the map D2 D1 to the decays. Default: 64.
        eps: Value added to the variance of the GroupNorm. Default: 6.4e-4.

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
        self.share = Parameter(mixing_coefficients(features, 1.0), decay=False)
        self.shift_down = Dense(features, 5 * shift_rank, False, kernel_initializer="zeros")
        self.shift_up = [
            _low_rank_up(shift_rank, mixing_coefficients(features, power))
            for power in (0.5, 1.0, 1.0, 0.5, 1.0)
        ]
        self.decay_down = Dense(features, decay_rank, False, kernel_initializer="zeros")
        self.decay_up = _low_rank_up(decay_rank, log_decay_rates(features))

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads; the token shift is computed by each process."""
        return self.split_by_heads(("decay_up",), {})

    def project(self, x: Tensor, previous: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return receptance, key, value, gate and log decay."""
        low = ops.tanh(self.shift_down(ops.lerp(x, previous, self.share)))
        r, k, v, g, w = (
            ops.lerp(x, previous, up(part))
            for up, part in zip(self.shift_up, ops.split(low, 5, axis=-1), strict=True)
        )
        rate = self.decay_up(ops.tanh(self.decay_down(w)))
        decay = -ops.exp(upcast_half(rate))
        return self.receptance(r), self.key(k), self.value(v), self.gate(g), decay


def _low_rank_up(rank: int, bias: list[float]) -> Dense:
    """Create the second factor of a low-rank map, with small weights and the given bias."""
    uniform = {"type": "uniform", "low": -0.01, "high": 0.01}
    layer = Dense(rank, len(bias), kernel_initializer=uniform)
    bias_of(layer).assign(bias)
    return layer
