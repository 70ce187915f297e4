"""Multi-head Hyena."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Size
from ember_ml.nn._checks import require_divisible
from ember_ml.nn.layers.sequence_mixing.attention.cache import KVCache
from ember_ml.nn.layers.sequence_mixing.base import index_range, new_zeros
from ember_ml.nn.layers.sequence_mixing.fft_conv import fft_conv, with_skip
from ember_ml.nn.layers.sequence_mixing.hyena import HyenaBase, mask_channels
from ember_ml.nn.states import StateNode
from ember_ml.registry import register

ATTENTION_LENGTH = 1024
"""Longest sequence for which the quadratic form of `MultiHeadHyena` is faster than FFTs."""


class _CacheFields(NamedTuple):
    cache: KVCache
    kernel: Tensor | tuple[()]


class FilteredCache(_CacheFields, StateNode):
    """Keys and values of earlier positions, and the filters that weight them by distance.

    Args:
        cache: Keys and values, (batch, filters, slots, heads).
        kernel: The filters, (filters, taps). Absent before the first position.
    """

    __slots__ = ()

    def take_rows(self, indices: Tensor) -> Self:
        """Return the caches of some examples."""
        return type(self)(self.cache.take_rows(indices), self.kernel)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Return the caches of several batches as one."""
        kernel = next((p.kernel for p in parts if isinstance(p.kernel, Tensor)), ())
        return cls(KVCache.join([part.cache for part in parts]), kernel)

    def reserve(self) -> Self:
        """Return the cache with a buffer that it is extended in."""
        return type(self)(self.cache.reserve(), self.kernel)

    def trim(self, longest: int) -> Self:
        """Return the cache without slots that are empty in all examples."""
        return type(self)(self.cache.trim(longest), self.kernel)


MultiHeadState: TypeAlias = tuple[Tensor, FilteredCache]
"""Last inputs of the short filters, and keys and values."""


@register("layers/multi_head_hyena", aliases=["mh-hyena"])
class MultiHeadHyena(HyenaBase):
    r"""Multi-head Hyena: outer products of keys and values, read by the query.

    .. math::
        y_t = W_o \Big( \sum_{s=0}^{t} (h_{t-s} + D \delta_{ts}) \, (q_t \cdot k_s) \, v_s \Big)

    Each group of num_heads channels has one filter. Short sequences are computed by this sum, like
    attention without a softmax. Long sequences use FFTs of the outer products.

    The state holds the last max_length keys and values, which `step` reads like attention.

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

    def mix(
        self, x: Tensor, mask: Tensor | None, state: MultiHeadState | None
    ) -> tuple[Tensor, MultiHeadState | None]:
        """Mix the sequence."""
        u = self.project(x, mask)
        if state is None:
            query, value, key = self._split_heads(self.filtered(u), mask)
            kernel = self.filter(x.shape[1])
            return self._read_heads(self._mix_all(query, key, value, kernel)), None
        parts, short = self.extend_short(u, mask, state[0])
        query, value, key = self._split_heads(parts, mask)
        mixed, cache = self._look_back(query, key, value, mask, state[1])
        return self._read_heads(mixed), (short, cache)

    def _split_heads(self, parts: list[Tensor], mask: Tensor | None) -> list[Tensor]:
        """Return query, value and key as (batch, filters, heads, time), keys zero at padding."""
        query, value, key = parts
        shape = (query.shape[0], self.inner // self.num_heads, self.num_heads, query.shape[-1])
        return [ops.reshape(u, shape) for u in (query, value, mask_channels(key, mask))]

    def _read_heads(self, mixed: Tensor) -> Tensor:
        return self.read_out(ops.reshape(mixed, (mixed.shape[0], self.inner, mixed.shape[-1])))

    def _mix_all(self, query: Tensor, key: Tensor, value: Tensor, kernel: Tensor) -> Tensor:
        mix = self._mix_by_pairs if query.shape[-1] <= ATTENTION_LENGTH else self._mix_by_fft
        return mix(query, key, value, kernel)

    def _look_back(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        state: FilteredCache,
    ) -> tuple[Tensor, FilteredCache]:
        """Return the outputs of positions after those of a cache, and the next cache.

        Args:
            query: Queries, (batch, filters, heads, time).
            key: Keys, in the shape of the queries, zero at padding.
            value: Values, in the shape of the queries.
            mask: Padding mask, (batch, time), with padding last.
            state: Keys and values of earlier positions, and the filters.
        """
        kernel, time = self.taps(state.kernel, self.max_length), query.shape[-1]
        cache, filled = state.cache, state.cache.is_filled(time)
        key, value = ops.swapaxes(key, 2, 3), ops.swapaxes(value, 2, 3)  # time before heads
        after = cache.append(key, value, mask)
        read = after if mask is None else cache.append(key, value)
        distance = _distances(read.slots, time, query)
        factors = ops.take(kernel, ops.clip(distance, 0, kernel.shape[1] - 1), axis=1)
        is_seen = ops.logical_and(distance >= 0, distance < kernel.shape[1])
        scores = ops.matmul(read.keys, query) * ops.where(is_seen, factors, 0.0)
        if filled is not None:
            scores = ops.where(filled[:, None, :, None], scores, 0.0)
        mixed = ops.matmul(ops.swapaxes(read.values, 2, 3), scores)  # (batch, filters, heads, time)
        return mixed, FilteredCache(after.keep(self.max_length - 1), kernel)

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

    def initial_state(self, batch: int) -> MultiHeadState:
        """Return the state of the short filters and an empty cache of keys and values."""
        filters = self.inner // self.num_heads
        empty = new_zeros(self.skip, (batch, filters, 0, self.num_heads))
        cache = FilteredCache(KVCache(empty, empty, (), (), ()), ())
        return self.short.initial_state(batch), cache

    def step(self, x: Tensor, state: MultiHeadState) -> tuple[Tensor, MultiHeadState]:
        """Return the output at one position, and the next state."""
        self.check_step(x, state)
        parts, short = self.project_step(x, state[0])
        query, value, key = self._split_heads([part[:, :, None] for part in parts], None)
        mixed, cache = self._look_back(query, key, value, None, state[1])
        return self.read_out_step(ops.reshape(mixed, (x.shape[0], self.inner))), (short, cache)


def _distances(keys: int, queries: int, like: Tensor) -> Tensor:
    """Return the number of positions from each key to each query, (keys, queries)."""
    source = index_range(0, keys, like)
    target = index_range(keys - queries, keys, like)
    return target - source[:, None]
