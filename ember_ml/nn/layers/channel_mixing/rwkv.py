"""The channel mixers of RWKV-5 and RWKV-6."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, mask_padding, new_zeros
from ember_ml.nn.layers.sequence_mixing.rwkv import mixing_coefficients, token_shift
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


@register("layers/rwkv5_channel_mixer", aliases=["rwkv5-channel-mixer"])
class RWKV5ChannelMixer(SequenceMixer):
    r"""Channel mixer of RWKV-5: gated squared ReLUs of each position and the previous one.

    .. math:: y_t = \sigma(W_r x^r_t) \odot W_v \, \mathrm{relu}(W_k x^k_t)^2, \quad
        x^k_t = x_t + \mu_k \odot (x_{t-1} - x_t)

    The state is the previous input.

    Args:
        features: Number of input and output features.
        inner_features: Number of ReLUs. Default: 4 times the features.

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
        self.key_share = Parameter(mixing_coefficients(features, 1.0), decay=False)
        self.receptance_share = Parameter(mixing_coefficients(features, 1.0), decay=False)
        self.key = Dense(features, inner, bias=False)
        self.value = Dense(inner, features, bias=False)
        self.receptance = Dense(features, features, bias=False)

    def tensor_split(self) -> TensorSplit:
        """Return the split by inner features; the gate is computed by each process."""
        return split_between(("key",), "value")

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example."""
        return self.features

    def mix(
        self, x: Tensor, mask: Tensor | None, state: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Mix the sequence."""
        x = mask_padding(x, mask)
        previous, last = token_shift(x, state, mask)
        return self._mix(x, previous), last

    def initial_state(self, batch: int) -> Tensor:
        """Return the input before the first position: zeros, (batch, features)."""
        return new_zeros(self.receptance.weight, (batch, self.features))

    def step(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output at one position and the next state."""
        self.check_step(x, state)
        return self._mix(x, state), x

    def _mix(self, x: Tensor, previous: Tensor) -> Tensor:
        key = ops.relu(self.key(ops.lerp(x, previous, self.key_share)))
        gate = ops.sigmoid(self.receptance(ops.lerp(x, previous, self.receptance_share)))
        return gate * self.value(key * key)


@register("layers/rwkv6_channel_mixer", aliases=["rwkv6-channel-mixer"])
class RWKV6ChannelMixer(RWKV5ChannelMixer):
    r"""Channel mixer of RWKV-6; it is the same function as that of RWKV-5.

    .. math:: y_t = \sigma(W_r x^r_t) \odot W_v \, \mathrm{relu}(W_k x^k_t)^2, \quad
        x^k_t = x_t + \mu_k \odot (x_{t-1} - x_t)

    Args:
        features: Number of input and output features.
        inner_features: Number of ReLUs. Default: 4 times the features.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> nn.layers.channel_mixing.RWKV6ChannelMixer(8)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """
