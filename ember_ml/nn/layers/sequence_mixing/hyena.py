"""Hyena."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing.dense import Dense, bias_of
from ember_ml.nn.layers.sequence_mixing._filters import HyenaFilter
from ember_ml.nn.layers.sequence_mixing.base import (
    SequenceMixer,
    last_positions,
)
from ember_ml.nn.layers.sequence_mixing.fft_conv import device_kernel, with_skip
from ember_ml.nn.layers.sequence_mixing.online_conv import ConvState
from ember_ml.nn.layers.sequence_mixing.short_conv import Taps
from ember_ml.nn.parameter import Parameter
from ember_ml.nn.sequence_module import Positions
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import WHOLE, Region, TensorSplit
from ember_ml.registry import register


def mask_channels(x: Tensor, mask: Tensor | None) -> Tensor:
    """Return (batch, channels, time) with zeros at padding."""
    return x if mask is None else ops.where(ops.expand_dims(mask, 1), x, 0.0)


HyenaState: TypeAlias = tuple[Tensor, ConvState]
"""Last inputs of the short filters, and the state of the long ones."""


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

    region: Region = WHOLE
    """Processes that the channels are split among."""

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

    def tensor_split(self) -> TensorSplit:
        """Return the split by channels.

        Channels whose distance is a multiple of `unit` may share an output of the projection, so
        each run of `unit` channels is split by itself.
        """
        outputs = 3 * self.inner // self.groups
        unit = math.gcd(self.inner, outputs)
        first, taps, inner = (Split(0, n // unit) for n in (outputs, 3 * self.inner, self.inner))
        return TensorSplit(
            {
                "in_proj.weight": first,
                "in_proj.bias": first,
                "short.weight": taps,
                "short.bias": taps,
                "filter.output.weight": inner,
                "filter.decay": inner,
                "skip": inner,
                "out_proj.weight": Split(1, inner.blocks),
            },
            sizes=("inner",),
            once=("out_proj.bias",),
            regions=("", "filter"),
        )

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
        rows = ops.reshape(self.region.enter(x), (-1, self.features))
        u = ops.linear(self.in_proj.weight, rows) + ops.expand_dims(bias_of(self.in_proj), 1)
        return mask_channels(ops.swapaxes(ops.reshape(u, (-1, *x.shape[:2])), 0, 1), mask)

    def filtered(self, u: Tensor) -> list[Tensor]:
        """Return the outputs of the short filters in three parts, (batch, inner, time) each."""
        return ops.split(self.short(ops.tile(u, (1, self.groups, 1))), 3, axis=1)

    def convolve(
        self, x: Tensor, mask: Tensor | None, state: HyenaState | None
    ) -> tuple[Tensor, HyenaState | None]:
        """Return the query times the long convolution of key times value, and the next state.

        Args:
            x: Input, (batch, time, features).
            mask: Padding mask, (batch, time), False for padding.
            state: State before the first position; None: the start of the sequence.

        Returns:
            The product, (batch, inner, time), and the state; None without a first state.
        """
        u = self.project(x, mask)
        if state is not None:
            return self._extend(u, mask, state)
        kernel = with_skip(self.filter(x.shape[1]), self.skip)
        conv = device_kernel(x)
        if conv is None:
            return ops.gated_long_conv(u, *self._short_filters(), kernel, mask), None
        query, key, value = self.filtered(u)
        return query * conv(mask_channels(key * value, mask), kernel), None

    def _extend(
        self, u: Tensor, mask: Tensor | None, state: HyenaState
    ) -> tuple[Tensor, HyenaState]:
        """Return the result of `convolve` after earlier inputs, and the next state."""
        taps = self.taps(state[1].kernel, state[1].inputs + u.shape[2])
        if state[1].is_start and device_kernel(u) is None:  # faster: no output needs the state
            y = ops.gated_long_conv(u, *self._short_filters(), taps, mask)
            joined = ops.gated_conv_inputs(u, *self._short_filters(), mask)
            return y, (self.next_short(u, mask, state[0]), state[1].after(joined, taps, mask))
        (query, key, value), short = self.extend_short(u, mask, state[0])
        y, long = state[1].extend(mask_channels(key * value, mask), taps, mask)
        return query * y, (short, long)

    def _short_filters(self) -> tuple[Tensor, Tensor]:
        assert self.short.bias is not None
        return self.short.weight, self.short.bias

    def extend_short(
        self, u: Tensor, mask: Tensor | None, state: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        """Return the outputs of the short filters after earlier inputs, and their next state."""
        before = state[:, : u.shape[1]]  # all groups have the same inputs
        window = ops.concat([before, u], axis=2)
        y = self.filtered(window)
        return [part[:, :, before.shape[2] :] for part in y], self.next_short(u, mask, state)

    def next_short(self, u: Tensor, mask: Tensor | None, state: Tensor) -> Tensor:
        """Return the state of the short filters after further inputs."""
        last = last_positions(state[:, : u.shape[1]], u, mask, axis=2)
        return ops.tile(last, (1, self.groups, 1))

    def convolve_step(self, x: Tensor, state: HyenaState) -> tuple[Tensor, HyenaState]:
        """Return the result of `convolve` at one position, (batch, inner), and the next state."""
        (query, key, value), short = self.project_step(x, state[0])
        y, long = state[1].step(key * value, self.taps(state[1].kernel, self.max_length))
        return query * y, (short, long)

    def project_step(self, x: Tensor, state: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return the outputs of the short filters at one position, and their next state."""
        u = ops.tile(self.in_proj(self.region.enter(x)), (1, self.groups))
        u, state = self.short.step(u, state)
        return ops.split(u, 3, axis=1), state

    def read_out(self, y: Tensor) -> Tensor:
        """Apply the output projection: (batch, channels, time) -> (batch, time, features)."""
        flat = ops.reshape(ops.swapaxes(y, 0, 1), (y.shape[1], -1))
        out = ops.linear(ops.swapaxes(flat, 0, 1), self.out_proj.weight)
        out = self.region.leave(out + bias_of(self.out_proj))
        return ops.reshape(out, (y.shape[0], y.shape[2], self.features))

    def read_out_step(self, y: Tensor) -> Tensor:
        """Apply the output projection: (..., channels) -> (..., features)."""
        return self.region.leave(self.out_proj(y))

    def initial_state(self, batch: int) -> Any:
        """Return the states of the short and of the long filters before the first position."""
        long = ConvState.start(batch, self.inner, self.skip)
        return self.short.initial_state(batch), long

    def taps(self, kernel: Tensor | tuple[()], length: int) -> Tensor:
        """Return the first taps of the long filters with the skip connection.

        Args:
            kernel: Filters of a state, which are used in inference mode; () if it has none.
            length: Number of taps; at most max_length are returned.
        """
        if isinstance(kernel, Tensor) and not self.training:
            return kernel
        return with_skip(self.filter(length), self.skip)


@register("layers/hyena")
class Hyena(HyenaBase):
    r"""Hyena operator of order 2: a long convolution between two gates.

    .. math:: y = W_o \big( q \odot (h * (k \odot v) + D \odot k \odot v) \big)

    q, k and v are projections of x, each with its own short filter. A small network computes the
    long filter h from time; h has max_length taps. Groups of channels share the output of the
    projection and filter it with different short filters.

    The state holds the last max_length inputs of the convolution, because a general convolution has
    no smaller one. `step` computes an online convolution, O(log^2 n) per channel for n taps.

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

    def mix(
        self, x: Tensor, mask: Tensor | None, state: HyenaState | None
    ) -> tuple[Tensor, HyenaState | None]:
        """Mix the sequence."""
        y, state = self.convolve(x, mask, state)
        return self.read_out(y), state

    def forward_at(self, x: Tensor, at: Positions, mask: Tensor | None = None) -> Tensor:
        """Return the outputs of some positions; others are not projected."""
        self.check_sequence(x, mask)
        y, _ = self.convolve(x, mask, None)
        if isinstance(at, int):
            return self.read_out(y[:, :, at][:, :, None])
        columns = ops.reshape(ops.swapaxes(y, 0, 1), (y.shape[1], -1))
        return self.read_out(ops.take(columns, at, axis=1)[None])

    def step(self, x: Tensor, state: HyenaState) -> tuple[Tensor, HyenaState]:
        """Return the output at one position and the states of the filters."""
        self.check_step(x, state)
        mixed, state = self.convolve_step(x, state)
        return self.read_out_step(mixed), state
