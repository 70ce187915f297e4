"""The real-gated linear recurrent unit of Griffin."""

from __future__ import annotations

from typing import TypeAlias

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import bool_
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import ActivationField, Size
from ember_ml.nn import activations
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.initializers import Normal, Uniform
from ember_ml.nn.layers.base import upcast_half
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.gated_linear import GELU_TANH
from ember_ml.nn.layers.sequence_mixing._chunked import zero_state
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    mask_padding,
    real_lengths,
)
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register

RATE = 8.0
"""The factor c of the decay exponent."""
SMALLEST = 1e-8
"""Smallest square of the factor of an input, which bounds the gradient of its root."""
RGLRUState: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""Inputs of the convolution, states of the channels, and number of positions so far."""


@register("layers/rg_lru", aliases=["rg-lru", "griffin"])
class RGLRU(SequenceMixer):
    r"""Real-gated linear recurrent unit: the recurrent block of Griffin.

    .. math::
        u &= \mathrm{conv}(W_x x), \quad r_t = \sigma(W_r u_t), \quad i_t = \sigma(W_i u_t) \\
        h_t &= a_t h_{t-1} + \sqrt{1 - a_t^2} \, (i_t \odot u_t), \quad
            \log a_t = -8 \, r_t \odot \mathrm{softplus}(\Lambda) \\
        y_t &= W_{out} \big( h_t \odot \phi(W_y x_t) \big)

    At the first position of a sequence the root is 1.

    Args:
        features: Number of input and output features.
        inner_features: Number of channels of the recurrence. Default: `features`.
        num_heads: Number of blocks of W_r and W_i, which are block diagonal. Must divide
            `inner_features`. Default: 1.
        d_conv: Number of taps of the short convolution. Default: 4.
        activation: The activation function phi. Default: GELU with the tanh approximation.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: De et al., "Griffin: Mixing Gated Linear Recurrences with Local Attention for
    Efficient Language Models", 2024.

    Example:
        >>> create("layers/rg_lru", features=8, num_heads=2)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
    """

    def __init__(
        self,
        features: Size,
        inner_features: Size | None = None,
        num_heads: Size = 1,
        d_conv: Size = 4,
        activation: ActivationField = GELU_TANH,
    ) -> None:
        self.features = features
        self.inner = inner = inner_features or features
        require_divisible(self, inner_features=inner, num_heads=num_heads)
        self.num_heads = num_heads
        size = inner // num_heads
        self.in_proj = Dense(features, 2 * inner)
        self.conv = Taps(inner, d_conv)
        normal = Normal(0.0, size**-0.5)
        self.input_gate = Parameter(normal((num_heads, size, size)))
        self.input_bias = Parameter(ops.zeros((num_heads, size)), decay=False)
        self.decay_gate = Parameter(normal((num_heads, size, size)))
        self.decay_bias = Parameter(ops.zeros((num_heads, size)), decay=False)
        # a is between 0.9 and 0.999 for r = 1 / 8
        rates = -0.5 * ops.log(Uniform(0.9**2, 0.999**2)((inner,)))
        self.decay = Parameter(ops.log(ops.expm1(rates)), decay=False)
        self.activation = activations.get(activation)
        self.out_proj = Dense(inner, features)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads, the blocks of the gates."""
        gates = ("input_gate", "input_bias", "decay_gate", "decay_bias", "decay")
        own = ("conv.weight", "conv.bias", *gates)
        return split_between(
            {"in_proj": Split(0, blocks=2)},
            "out_proj",
            sizes=("num_heads", "inner"),
            splits=dict.fromkeys(own, Split(0)),
        )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: states and inputs of the convolution."""
        return self.inner * self.conv.kernel_size

    def mix(
        self, x: Tensor, mask: Tensor | None, state: RGLRUState | None
    ) -> tuple[Tensor, RGLRUState | None]:
        """Mix the sequence."""
        window, states, length = state or (None, None, None)
        u, gate = ops.split(self.in_proj(x), 2, axis=-1)
        u, window = self.conv.run(mask_padding(u, mask), mask, window)
        decay, update = self._recurrence(u, self._is_first(x, mask, length))
        if mask is not None:  # a factor of 1 leaves the state unchanged
            is_real = ops.astype(mask, bool_)[:, :, None]
            decay, update = ops.where(is_real, decay, 1.0), ops.where(is_real, update, 0.0)
        h, states = ops.linear_recurrence(decay, update, states)
        y = self.out_proj(ops.cast(h, x.dtype) * self.activation(gate))
        if window is None or length is None:
            return y, None
        length = length + (x.shape[1] if mask is None else real_lengths(mask))
        return y, (window, states, length)

    def _is_first(self, x: Tensor, mask: Tensor | None, length: Tensor | None) -> Tensor:
        """Return where a sequence starts, (batch, time, 1)."""
        ones = ops.ones_like(x[:, :, 0], dtype="int64")
        count = ops.cumsum(ones if mask is None else ops.astype(mask, "int64"), axis=1)
        count = count if length is None else count + length[:, None]
        return (count == 1)[:, :, None]

    def _recurrence(self, u: Tensor, is_first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the decay factors and the inputs of the recurrence, at least in float32."""
        r = self._gate(u, self.decay_gate, self.decay_bias)
        exponent = -RATE * upcast_half(r) * ops.softplus(upcast_half(self.decay))
        square = ops.maximum(-ops.expm1(2.0 * exponent), SMALLEST)
        factor = ops.where(is_first, 1.0, ops.sqrt(square))
        update = upcast_half(u * self._gate(u, self.input_gate, self.input_bias))
        return ops.exp(exponent), factor * update

    def _gate(self, u: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Return the sigmoid of a block diagonal map."""
        heads = ops.reshape(u, (*u.shape[:-1], self.num_heads, 1, self.inner // self.num_heads))
        y = ops.matmul(heads, weight)[..., 0, :] + bias
        return ops.sigmoid(ops.reshape(y, u.shape))

    def initial_state(self, batch: int) -> RGLRUState:
        """Return the inputs of the convolution and the states, all zero, and the length 0."""
        device, backend = self.decay.device, self.decay.backend
        length = convert_to_tensor([0] * batch, dtype="int64", device=device, backend=backend)
        return self.conv.initial_state(batch), zero_state(self.decay, batch, self.inner), length
