"""Hyena and multi-head Hyena."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing.dense import Dense, bias_of
from ember_ml.nn.layers.sequence_mixing._filters import HyenaFilter
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, TensorPair
from ember_ml.nn.layers.sequence_mixing.fft_conv import (
    device_kernel,
    empty_window,
    fft_conv,
    push,
    with_skip,
)
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.registry import register

ATTENTION_LENGTH = 1024
"""Longest sequence for which the quadratic form of `MultiHeadHyena` is faster than FFTs."""


def _mask_channels(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return (batch, channels, time) with zeros at padding."""
    return x if mask is None else ops.where(ops.expand_dims(mask, 1), x, 0.0)


class HyenaBase(SequenceMixer):
    """Base of the Hyena layers: projections with short filters, and long filters.

    Inner tensors are (batch, channels, time) with the channels first in memory: the projections
    produce and read this layout by one matrix product, and the convolutions process blocks of it.

    Args:
        features: Number of input and output features.
        inner: Number of inner channels.
        outputs: Number of channels that the output projection reads.
        filters: Number of long filters.
        groups: Number of groups of channels that share the output of the input projection.
        short_kernel_size: Number of taps of the short filters.
        filter_order: Width of the network that computes the long filters.
        max_length: Number of taps of the long filters.
    """

    def __init__(
        self,
        features: int,
        inner: int,
        outputs: int,
        filters: int,
        groups: int,
        short_kernel_size: int,
        filter_order: int,
        max_length: int,
    ) -> None:
        require_divisible(self, **{"3 * inner channels": 3 * inner}, projection_groups=groups)
        self.features = features
        self.inner = inner
        self.groups = groups
        self.max_length = max_length
        self.in_proj = Dense(features, 3 * inner // groups)
        self.short = Taps(3 * inner, short_kernel_size)
        self.filter = HyenaFilter(filters, filter_order, max_length)
        self.skip = Parameter(Normal(0.0, 1.0)((filters,)), decay=False)
        self.out_proj = Dense(outputs, features)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: the last inputs of all filters."""
        return self.inner * (self.max_length - 1 + 3 * (self.short.kernel_size - 1))

    @property
    def filter_state_size(self) -> int:
        """State size of equivalent linear recurrences of order `filter_order`."""
        return self.inner * self.filter.order

    def project(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the inputs of the short filters, (batch, 3 * inner / groups, time)."""
        flat = ops.swapaxes(ops.reshape(x, (-1, self.features)), 0, 1)
        u = ops.matmul(self.in_proj.weight, flat) + ops.expand_dims(bias_of(self.in_proj), 1)
        return _mask_channels(ops.swapaxes(ops.reshape(u, (-1, *x.shape[:2])), 0, 1), mask)

    def filtered(self, u: Tensor) -> list[Tensor]:
        """Return the outputs of the short filters in three parts, (batch, inner, time) each."""
        return ops.split(self.short(ops.tile(u, (1, self.groups, 1))), 3, axis=1)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the query times the long convolution of key times value, (batch, inner, time)."""
        u = self.project(x, mask)
        kernel = with_skip(self.filter(x.shape[1]), self.skip)
        conv = device_kernel(x)
        if conv is None:
            assert self.short.bias is not None
            return ops.gated_long_conv(u, self.short.weight, self.short.bias, kernel, mask)
        query, key, value = self.filtered(u)
        return query * conv(_mask_channels(key * value, mask), kernel)

    def mix_step(self, x: Tensor, state: TensorPair) -> tuple[Tensor, TensorPair]:
        """Return the result of `mix` at one position, (batch, inner), and the next state."""
        (query, key, value), short = self.project_step(x, state[0])
        window = push(key * value, state[1])
        return query * ops.einsum("btc,ct->bc", window, self.taps()), (short, window[:, 1:])

    def project_step(self, x: Tensor, state: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the outputs of the short filters at one position, and their next state."""
        u, state = self.short.step(ops.tile(self.in_proj(x), (1, self.groups)), state)
        return ops.split(u, 3, axis=1), state

    def read_out(self, y: Tensor) -> Tensor:
        """Apply the output projection: (batch, channels, time) -> (batch, time, features)."""
        flat = ops.reshape(ops.swapaxes(y, 0, 1), (y.shape[1], -1))
        out = ops.matmul(ops.swapaxes(flat, 0, 1), ops.swapaxes(self.out_proj.weight, 0, 1))
        return ops.reshape(out + bias_of(self.out_proj), (y.shape[0], y.shape[2], self.features))

    def window(self, batch: int) -> Tensor:
        """Return the inputs of the long filters before the first position: zeros."""
        return empty_window(batch, self.inner, self.max_length, self.skip)

    def taps(self) -> Tensor:
        """Return the long filters with the skip connection, last tap first."""
        return ops.flip(with_skip(self.filter(self.max_length), self.skip), axis=1)


@register("layers/hyena")
class Hyena(HyenaBase):
    r"""Hyena operator of order 2: a long convolution between two gates.

    .. math:: y = W_o \big( q \odot (h * (k \odot v) + D \odot k \odot v) \big)

    q, k and v are projections of x, each with its own short filter. A small network computes the
    long filter h from time; h has max_length taps. Groups of channels share the output of the
    projection and filter it with different short filters.

    `step` stores the last max_length inputs of the convolution, because a general convolution has
    no state of constant size.

    Args:
        features: Number of input and output features.
        inner_factor: Number of inner channels per feature. Default: 4.
        projection_groups: Number of groups of channels that share the output of the projection.
            Must divide 3 times the inner channels. Default: 4.
        short_kernel_size: Number of taps of the short filters. Default: 3.
        filter_order: Width of the network that computes h. Default: 4.
        max_length: Number of taps of h. Default: 1280.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/hyena", features=8, max_length=16)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)

    Reference: Poli et al., "Hyena Hierarchy: Towards Larger Convolutional Language Models", 2023.
    """

    def __init__(
        self,
        features: Size,
        inner_factor: Size = 4,
        projection_groups: Size = 4,
        short_kernel_size: Size = 3,
        filter_order: Size = 4,
        max_length: Size = 1280,
    ) -> None:
        inner = features * inner_factor
        sizes = short_kernel_size, filter_order, max_length
        super().__init__(features, inner, inner, inner, projection_groups, *sizes)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the sequence."""
        self.check_sequence(x, mask)
        return self.read_out(self.mix(x, mask)) if x.size else x

    def initial_state(self, batch: int) -> TensorPair:
        """Return the inputs of the short and of the long filters before the first position."""
        return self.short.initial_state(batch), self.window(batch)

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the output at one position and the last inputs of the filters."""
        mixed, state = self.mix_step(x, state)
        return self.out_proj(mixed), state


@register("layers/multi_head_hyena", aliases=["mh-hyena"])
class MultiHeadHyena(HyenaBase):
    r"""Multi-head Hyena: outer products of keys and values, read by the query.

    .. math::
        y_t = W_o \Big( \sum_{s=0}^{t} (h_{t-s} + D \delta_{ts}) \, (q_t \cdot k_s) \, v_s \Big)

    Each group of num_heads channels has one filter. Short sequences are computed by this sum, like
    attention without a softmax. Long sequences use FFTs of the outer products.

    `step` stores the last max_length keys and values.

    Args:
        features: Number of input and output features.
        num_heads: Length of a key and of a value. Must divide the inner channels. Default: 16.
        inner_factor: Number of inner channels per feature. Default: 1.
        projection_groups: Number of groups of channels that share the output of the projection.
            Must divide 3 times the inner channels. Default: 4.
        short_kernel_size: Number of taps of the short filters. Default: 3.
        filter_order: Width of the network that computes h. Default: 2.
        max_length: Number of taps of h. Default: 1280.

    Shape: (batch, time, features) -> (batch, time, features).

    Example:
        >>> create("layers/mh-hyena", features=8, num_heads=4)(ops.ones((2, 5, 8))).shape
        (2, 5, 8)

    Reference: Massaroli et al., "Laughing Hyena Distillery", 2023.
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 16,
        inner_factor: Size = 1,
        projection_groups: Size = 4,
        short_kernel_size: Size = 3,
        filter_order: Size = 2,
        max_length: Size = 1280,
    ) -> None:
        inner = features * inner_factor
        require_divisible(self, **{"inner channels": inner}, num_heads=num_heads)
        self.num_heads = num_heads
        sizes = short_kernel_size, filter_order, max_length
        super().__init__(features, inner, inner, inner // num_heads, projection_groups, *sizes)

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example: last inputs, keys and values."""
        return self.inner * (2 * (self.max_length - 1) + 3 * (self.short.kernel_size - 1))

    @property
    def filter_state_size(self) -> int:
        """State size of equivalent linear recurrences of order `filter_order`."""
        return super().filter_state_size * self.num_heads

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Mix the sequence."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        query, value, key = self.filtered(self.project(x, mask))
        shape = (x.shape[0], -1, self.num_heads, x.shape[1])  # (batch, filters, heads, time)
        query, key, value = (
            ops.reshape(u, shape) for u in (query, _mask_channels(key, mask), value)
        )
        mix = self._mix_by_pairs if x.shape[1] <= ATTENTION_LENGTH else self._mix_by_fft
        mixed = mix(query, key, value, self.filter(x.shape[1]))
        return self.read_out(ops.reshape(mixed, (x.shape[0], self.inner, x.shape[1])))

    def _mix_by_pairs(self, query: Tensor, key: Tensor, value: Tensor, kernel: Tensor) -> Tensor:
        matrix = ops.causal_toeplitz(with_skip(kernel, self.skip), query.shape[-1])
        scores = ops.matmul(ops.swapaxes(key, 2, 3), query) * matrix  # (..., source, target)
        return ops.matmul(value, scores)

    def _mix_by_fft(self, query: Tensor, key: Tensor, value: Tensor, kernel: Tensor) -> Tensor:
        outer = ops.expand_dims(key, 3) * ops.expand_dims(value, 2)
        outer = ops.transpose(outer, (0, 2, 3, 1, 4))  # (batch, key, value, filter, time)
        flat = ops.reshape(outer, (-1, *outer.shape[3:]))
        mixed = ops.reshape(fft_conv(flat, kernel, self.skip), outer.shape)
        return ops.einsum("bkvft,bfkt->bfvt", mixed, query)

    def initial_state(self, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the inputs of the short filters, the keys and the values before the start."""
        return self.short.initial_state(batch), self.window(batch), self.window(batch)

    def step(
        self, x: Tensor, state: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
        """Return the output at one position, and the last inputs, keys and values."""
        (query, value, key), short = self.project_step(x, state[0])
        keys, values = push(key, state[1]), push(value, state[2])
        batch, time = keys.shape[:2]
        heads = (batch, time, -1, self.num_heads)
        query = ops.reshape(query, (batch, -1, self.num_heads))
        scores = ops.einsum("bfh,btfh->bft", query, ops.reshape(keys, heads)) * self.taps()
        mixed = ops.einsum("bft,btfh->bfh", scores, ops.reshape(values, heads))
        y = self.out_proj(ops.reshape(mixed, (batch, self.inner)))
        return y, (short, keys[:, 1:], values[:, 1:])
