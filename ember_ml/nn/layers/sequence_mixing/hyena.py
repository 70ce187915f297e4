"""Hyena, and Hyena with heads."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.sequence_mixing._filters import HyenaFilter
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixer, State
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
"""Up to this length the scores of all pairs of positions are quicker than transforms."""


def masked(x: Tensor, mask: Tensor | None) -> Tensor:
    """(batch, channels, time) with zeros at the padding."""
    return x if mask is None else ops.where(ops.expand_dims(mask, 1), x, 0.0)


class HyenaBase(SequenceMixer):
    """The parts that the Hyenas share: a projection with short filters, and long filters.

    All inside is (batch, channels, time). The channels come first in memory: what the projections
    make and read by one product of matrices, and a block of which the convolutions take at a time.

    Args:
        features: the number of features in and out.
        inner: the number of channels inside.
        outputs: the number of channels that the last projection reads.
        filters: the number of long filters.
        groups: how many groups of channels share the values of the first projection.
        short_kernel_size: taps of the short filters.
        filter_order: the width of the network that makes the long filters.
        max_length: taps of the long filters.
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
        if 3 * inner % groups:
            raise ArgumentError(
                f"{type(self).__name__}: the 3 * {inner} inner channels must be a multiple of "
                f"projection_groups={groups}"
            )
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
        """The inputs that later positions still see."""
        return self.inner * (self.max_length - 1 + 3 * (self.short.kernel_size - 1))

    @property
    def filter_state_size(self) -> int:
        """The state of recurrences of the filters' order, that would do what the filters do."""
        return self.inner * self.filter.order

    def project(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The values that the short filters read, (batch, 3 * inner / groups, time)."""
        bias: Any = self.in_proj.bias
        flat = ops.reshape(x, (-1, self.features))
        u = ops.matmul(self.in_proj.weight, ops.swapaxes(flat, 0, 1)) + ops.expand_dims(bias, 1)
        return masked(ops.swapaxes(ops.reshape(u, (-1, *x.shape[:2])), 0, 1), mask)

    def filtered(self, u: Tensor) -> list[Tensor]:
        """The three sequences that the convolution joins, (batch, inner, time) each."""
        return ops.split(self.short(ops.tile(u, (1, self.groups, 1))), 3, axis=1)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The long convolution of what a key lets in, read by the query, (batch, inner, time)."""
        u = self.project(x, mask)
        kernel = with_skip(self.filter(x.shape[1]), self.skip)
        conv = device_kernel(x)
        if conv is None:
            assert self.short.bias is not None
            return ops.gated_long_conv(u, self.short.weight, self.short.bias, kernel, mask)
        query, key, value = self.filtered(u)
        return query * conv(masked(key * value, mask), kernel)

    def project_step(self, x: Tensor, state: Tensor) -> tuple[list[Tensor], Tensor]:
        """The same of one position, (batch, inner) each, and the state of the short filters."""
        u, state = self.short.step(ops.tile(self.in_proj(x), (1, self.groups)), state)
        return ops.split(u, 3, axis=1), state

    def read_out(self, y: Tensor) -> Tensor:
        """(batch, channels, time) -> (batch, time, features)."""
        flat = ops.reshape(ops.swapaxes(y, 0, 1), (y.shape[1], -1))
        out = ops.matmul(ops.swapaxes(flat, 0, 1), ops.swapaxes(self.out_proj.weight, 0, 1))
        assert self.out_proj.bias is not None
        return ops.reshape(out + self.out_proj.bias, (y.shape[0], y.shape[2], self.features))

    def window(self, batch: int) -> Tensor:
        """No inputs of the long filters yet."""
        return empty_window(batch, self.inner, self.max_length, self.skip)

    def taps(self) -> Tensor:
        """The long filters with what goes past them, the last tap first, (filters, max_length)."""
        return ops.flip(with_skip(self.filter(self.max_length), self.skip), axis=1)


@register("layers/hyena")
class Hyena(HyenaBase):
    r"""A long convolution between two gates.

    .. math:: y = W_o \big( q \odot (h * (k \odot v) + D \odot k \odot v) \big)

    q, k and v are projections of x, each under a short filter of its own; h is made by a small
    network of time, and has max_length taps. The projection makes only a part of the channels,
    which are repeated: each group of channels filters the same values in its own way.

    The form that goes step by step keeps the last max_length inputs of the convolution: a
    convolution has no state of constant size in general.

    Args:
        features: the number of features in and out.
        inner_factor: channels inside, as a multiple of the features.
        projection_groups: how many groups of channels share the values of the projection.
        short_kernel_size: taps of the short filters.
        filter_order: the width of the network that makes h.
        max_length: the number of taps of h.

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
        super().__init__(
            features,
            inner,
            inner,
            inner,
            projection_groups,
            short_kernel_size,
            filter_order,
            max_length,
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        return self.read_out(self.mix(x, mask))

    def initial_state(self, batch: int) -> State:
        """No inputs yet: of the short filters, and of the long ones."""
        return self.short.initial_state(batch), self.window(batch)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the last inputs."""
        (query, key, value), short = self.project_step(x, state[0])
        seen = push(key * value, state[1])
        mixed = ops.einsum("btc,ct->bc", seen, self.taps())
        return self.out_proj(query * mixed), (short, seen[:, 1:])


@register("layers/multi_head_hyena", aliases=["mh-hyena"])
class MultiHeadHyena(HyenaBase):
    r"""Hyena whose keys and values meet in an outer product, which the query reads.

    .. math::
        y_t = W_o \Big( \sum_{s=0}^{t} (h_{t-s} + D \delta_{ts}) \, (q_t \cdot k_s) \, v_s \Big)

    There is a filter for each group of num_heads channels. Short sequences are computed as this
    sum is written, as attention without a softmax; long ones by transforms of the outer products.

    The form that goes step by step keeps the last max_length keys and values.

    Args:
        features: the number of features in and out.
        num_heads: the length of a key and of a value; the channels are a multiple of it.
        inner_factor: channels inside, as a multiple of the features.
        projection_groups: how many groups of channels share the values of the projection.
        short_kernel_size: taps of the short filters.
        filter_order: the width of the network that makes h.
        max_length: the number of taps of h.

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
        if inner % num_heads:
            raise ArgumentError(
                f"MultiHeadHyena: the {inner} inner channels must be a multiple of "
                f"num_heads={num_heads}"
            )
        self.num_heads = num_heads
        super().__init__(
            features,
            inner,
            inner,
            inner // num_heads,
            projection_groups,
            short_kernel_size,
            filter_order,
            max_length,
        )

    @property
    def state_size(self) -> int:
        """The keys, values and inputs that later positions still see."""
        return self.inner * (2 * (self.max_length - 1) + 3 * (self.short.kernel_size - 1))

    @property
    def filter_state_size(self) -> int:
        """The same of each pair of a key's and a value's numbers."""
        return super().filter_state_size * self.num_heads

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence mixed."""
        self.check_sequence(x, mask)
        if x.size == 0:
            return x
        query, value, key = self.filtered(self.project(x, mask))
        shape = (x.shape[0], -1, self.num_heads, x.shape[1])  # (batch, filters, heads, time)
        query, key, value = (ops.reshape(u, shape) for u in (query, masked(key, mask), value))
        mix = self._by_pairs if x.shape[1] <= ATTENTION_LENGTH else self._by_transforms
        mixed = mix(query, key, value, self.filter(x.shape[1]))
        return self.read_out(ops.reshape(mixed, (x.shape[0], self.inner, x.shape[1])))

    def _by_pairs(self, query: Tensor, key: Tensor, value: Tensor, kernel: Tensor) -> Tensor:
        matrix = ops.causal_toeplitz(with_skip(kernel, self.skip), query.shape[-1])
        scores = ops.matmul(ops.swapaxes(key, 2, 3), query) * matrix  # (..., source, target)
        return ops.matmul(value, scores)

    def _by_transforms(self, query: Tensor, key: Tensor, value: Tensor, kernel: Tensor) -> Tensor:
        outer = ops.expand_dims(key, 3) * ops.expand_dims(value, 2)
        outer = ops.transpose(outer, (0, 2, 3, 1, 4))  # (batch, key, value, filter, time)
        flat = ops.reshape(outer, (-1, *outer.shape[3:]))
        mixed = ops.reshape(fft_conv(flat, kernel, self.skip), outer.shape)
        return ops.einsum("bkvft,bfkt->bfvt", mixed, query)

    def initial_state(self, batch: int) -> State:
        """No inputs of the short filters yet, and no keys and values."""
        return self.short.initial_state(batch), self.window(batch), self.window(batch)

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The output of one position, and the last inputs, keys and values."""
        (query, value, key), short = self.project_step(x, state[0])
        keys, values = push(key, state[1]), push(value, state[2])
        batch, time = keys.shape[:2]
        heads = (batch, time, -1, self.num_heads)
        query = ops.reshape(query, (batch, -1, self.num_heads))
        scores = ops.einsum("bfh,btfh->bft", query, ops.reshape(keys, heads)) * self.taps()
        mixed = ops.einsum("bft,btfh->bfh", scores, ops.reshape(values, heads))
        y = self.out_proj(ops.reshape(mixed, (batch, self.inner)))
        return y, (short, keys[:, 1:], values[:, 1:])
