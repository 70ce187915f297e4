"""The channel mixers of RWKV 5 and 6."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing._chunked import shown
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, zeros_beside
from ember_ml.nn.layers.sequence_mixing.rwkv import shares, shifted
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register


@register("layers/rwkv5_channel_mixer", aliases=["rwkv5-channel-mixer"])
class RWKV5ChannelMixer(SequenceMixer):
    r"""Squared ReLUs behind a gate, which see a position and the one before.

    .. math:: y_t = \sigma(W_r x^r_t) \odot W_v \, \mathrm{relu}(W_k x^k_t)^2, \quad
        x^k_t = x_t + \mu_k \odot (x_{t-1} - x_t)

    Args:
        features: how many there are.
        inner_features: the number of ReLUs; 4 times the features if not given.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> layer = nn.layers.channel_mixing.RWKV5ChannelMixer(8)
        >>> layer(ops.ones((2, 5, 8))).shape, layer.state_size
        ((2, 5, 8), 8)
    """

    def __init__(self, features: Size, inner_features: Size | None = None) -> None:
        inner = inner_features or 4 * features
        self.features = features
        self.key_share = Parameter(shares(features, 1.0), decay=False)
        self.receptance_share = Parameter(shares(features, 1.0), decay=False)
        self.key = Dense(features, inner, bias=False)
        self.value = Dense(inner, features, bias=False)
        self.receptance = Dense(features, features, bias=False)

    @property
    def state_size(self) -> int:
        """The position before."""
        return self.features

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mapped."""
        self.check_sequence(x, mask)
        x = shown(x, mask)
        return self._mixed(x, shifted(x))

    def initial_state(self, batch: int) -> Any:
        """The position before the first: zeros."""
        return zeros_beside(self.receptance.weight, (batch, self.features))

    def step(self, x: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The output of one position, which is the state after it."""
        self.check_features(x, self.features)
        return self._mixed(x, state), x

    def _mixed(self, x: Tensor, before: Tensor) -> Tensor:
        key = ops.relu(self.key(ops.lerp(x, before, self.key_share)))
        gate = ops.sigmoid(self.receptance(ops.lerp(x, before, self.receptance_share)))
        return gate * self.value(key * key)


@register("layers/rwkv6_channel_mixer", aliases=["rwkv6-channel-mixer"])
class RWKV6ChannelMixer(RWKV5ChannelMixer):
    r"""The channel mixer of RWKV 6, which computes what that of RWKV 5 does.

    .. math:: y_t = \sigma(W_r x^r_t) \odot W_v \, \mathrm{relu}(W_k x^k_t)^2, \quad
        x^k_t = x_t + \mu_k \odot (x_{t-1} - x_t)

    Args:
        features: how many there are.
        inner_features: the number of ReLUs; 4 times the features if not given.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> nn.layers.channel_mixing.RWKV6ChannelMixer(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(self, features: Size, inner_features: Size | None = None) -> None:
        super().__init__(features, inner_features)
