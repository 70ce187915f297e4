"""Self-attention."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import (
    Below1,
    Count,
    PositionEncoding,
    Positive,
    QueryKeyNorm,
    RopeScalingField,
    Size,
)
from ember_ml.nn import rope_scalings
from ember_ml.nn.layers.channel_mixing.dense import Dense
from ember_ml.nn.layers.channel_mixing.norms import RMSNorm
from ember_ml.nn.layers.sequence_mixing.attention.base import (
    BaseAttention,
    alibi_bias,
    combine_masks,
)
from ember_ml.nn.layers.sequence_mixing.attention.cache import KVCache
from ember_ml.nn.layers.sequence_mixing.attention.fixed_cache import FixedCache
from ember_ml.nn.layers.sequence_mixing.base import new_zeros
from ember_ml.nn.sequence_module import Positions, check_batch
from ember_ml.nn.splitting import Split
from ember_ml.nn.tensor_split import TensorSplit, split_between
from ember_ml.registry import register


@register("layers/attention", aliases=["self_attention"], config_name="AttentionConfig")
class SelfAttention(BaseAttention):
    r"""Self-attention: each position attends to the positions of its own sequence.

    .. math:: y = W_o \, \mathrm{softmax}\!\left(\frac{q k^\top}{\sqrt{d}}\right) v, \quad
        (q, k, v) = W x + b

    The state of `step` is the KV cache: the keys and values of all positions so far. With a window
    its size is constant.

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`, unless
            `head_features` is given.
        num_heads: Number of query heads. Default: 1.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        causal: Whether positions attend only to themselves and earlier positions. Default: True.
        window: Number of earlier (and, if not causal, later) positions that each position attends
            to. Default: all.
        positions: Position encoding. "rope" rotates queries and keys (pairing the two halves of a
            head), "alibi" adds a bias that falls with distance, "none" adds nothing.
            Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.
        head_features: Number of features of a head. Default: `features / num_heads`.
        rope_features: Number of features of a head that "rope" rotates, from the first on; even.
            Default: all.
        rope_scaling: Scaling of the frequencies of "rope" for long sequences: a name or config of
            `ember_ml.nn.rope_scalings`. Default: none.
        qk_norm: RMS norms of queries and keys before their rotation: "head" normalizes each head,
            "all" all heads together. Default: "none".
        qk_norm_eps: Epsilon of these norms. Default: 1e-6.
        scale: Factor of the scores. Default: 1 / sqrt(head features).
        softcap: Limit c of the scores s, which become c * tanh(s / c). Default: no limit.
        out_bias: Whether the output projection has a bias. Default: `bias`.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> layer = nn.layers.sequence_mixing.SelfAttention(8, num_heads=2)
        >>> layer(ops.ones((2, 5, 8))).shape
        (2, 5, 8)
        >>> y, cache = layer.step(ops.ones((2, 8)), layer.initial_state(2))
        >>> cache.keys.shape
        (2, 2, 1, 4)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 1,
        num_kv_heads: Size | None = None,
        causal: bool = True,
        window: Count | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
        head_features: Size | None = None,
        rope_features: Size | None = None,
        rope_scaling: RopeScalingField = None,
        qk_norm: QueryKeyNorm = "none",
        qk_norm_eps: Positive = 1e-6,
        scale: Positive | None = None,
        softcap: Positive | None = None,
        out_bias: bool | None = None,
    ) -> None:
        super().__init__(
            features,
            num_heads,
            num_kv_heads,
            bias,
            dropout,
            head_features,
            scale,
            softcap,
            out_bias,
        )
        self.all_heads, self.first_head = num_heads, 0  # different from the layer's if it is split
        self.rope_features = rope_features or self.head_features
        self.rope_scaling = rope_scalings.get(rope_scaling)
        if positions == "rope":
            self._check_rope(window)
        self.is_causal = causal
        self.window = window
        self.positions = positions
        self.rope_base = rope_base
        width = (num_heads + 2 * self.num_kv_heads) * self.head_features
        self.qkv = Dense(features, width, bias=bias)
        self.qk_norm = qk_norm
        if qk_norm != "none":
            heads = (num_heads, self.num_kv_heads) if qk_norm == "all" else (1, 1)
            sizes = [count * self.head_features for count in heads]
            self.query_norm, self.key_norm = (RMSNorm(size, eps=qk_norm_eps) for size in sizes)

    def tensor_split(self) -> TensorSplit:
        """Return the split by heads; one key and value head is kept by each process."""
        key_size = self.num_kv_heads * self.head_features
        blocks = (self.num_heads * self.head_features, key_size, key_size)
        divided = ("num_heads",) if self.num_kv_heads == 1 else ("num_heads", "num_kv_heads")
        norms = () if self.qk_norm == "none" else ("query_norm", "key_norm")
        joint = norms[: len(divided)] if self.qk_norm == "all" else ()  # over several processes
        return split_between(
            {"qkv": Split(0, sizes=blocks, kept=(1, 2) if self.num_kv_heads == 1 else ())},
            "out",
            sizes=(*divided, *(f"{name}.features" for name in joint)),
            splits={f"{name}.weight": Split(0) for name in joint},
            shared=norms[len(joint) :],
            regions=joint,
            offsets={"first_head": "num_heads"},
        )

    def _check_rope(self, window: int | None) -> None:
        """Raise an error if the number of rotated features or the scaling is not valid."""
        name, size, rotated = type(self).__name__, self.head_features, self.rope_features
        if rotated % 2 or rotated > size:
            raise ArgumentError(
                f"{name}: positions='rope' requires an even number of features per head, but "
                f"rope_features={rotated} of {size} (by default all: features / num_heads = "
                f"{self.features} / {self.num_heads} = {self.features // self.num_heads})"
            )
        if self.rope_scaling is None:
            return
        self.rope_scaling.check(rotated)
        if self.rope_scaling.by_length and window is not None:
            raise ArgumentError(
                f"{name}: {self.rope_scaling!r} depends on the length of the sequence, which "
                f"attention with window={window} does not keep; use another rope_scaling"
            )

    @property
    def state_size(self) -> int:
        """Number of values in the state of one example; 0 without a window."""
        return 0 if self.window is None else self._pair_size * self.window

    @property
    def state_per_token(self) -> int:
        """Number of values that the state grows by at each position; 0 with a window."""
        return self._pair_size if self.window is None else 0

    @property
    def _pair_size(self) -> int:
        return 2 * self.num_kv_heads * self.head_features

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        *,
        state: KVCache | None = None,
    ) -> Any:
        """Return the outputs of all positions; with a state, also the state after the last one.

        Args:
            x: Input, (batch, time, features).
            mask: (batch, time), False for padding, which is not attended to. With a state, the
                padding of an example must come last.
            attention_mask: Booleans, True where a query may attend to a key, or biases of the
                scores: (time, keys), (batch, time, keys) or (batch, heads, time, keys). The keys
                are those of the state, followed by those of x.
            state: Keys and values of earlier positions. Default: none.
        """
        self.check_sequence(x, mask)
        if state is None:
            query, key, value = self._project(x, None, 0)
            return self._attend_causally(query, key, value, mask, attention_mask)
        if not isinstance(state, KVCache):
            raise ArgumentTypeError(
                f"{type(self).__name__}: expected a KVCache, such as that of initial_state, got "
                f"{type(state).__name__}" + "; only step takes it" * isinstance(state, FixedCache)
            )
        check_batch(self, x.shape[0], state)
        if mask is not None:
            self.check_right_padded(mask)
        if not x.size:
            return x, state
        query, key, value = self._project(x, state.positions(x.shape[1]), state.slots)
        after = state.append(key, value, mask)
        read = after if mask is None else state.append(key, value)  # queries are at their keys
        filled = state.is_filled(x.shape[1])
        y = self._attend_causally(query, read.keys, read.values, filled, attention_mask)
        return y, after if self.window is None else after.keep(self.window)

    def forward_at(self, x: Tensor, at: Positions, mask: Tensor | None = None) -> Tensor:
        """Return the outputs of some positions; for the last position, only its query attends."""
        self.check_sequence(x, mask)
        query, key, value = self._project(x, None, 0)
        if isinstance(at, int) and at in (-1, x.shape[1] - 1):
            return self._attend_causally(query[:, :, -1:], key, value, mask, None)
        return self._attend_causally(query, key, value, mask, None, at)

    def _attend_causally(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        filled: Tensor | None,
        attention_mask: Tensor | None,
        at: Positions | None = None,
    ) -> Tensor:
        """Return the output, (batch, queries, features); the last query is at the last key.

        Args:
            query: Queries, (batch, heads, queries, head features).
            key: Keys, (batch, key heads, keys, head features).
            value: Values, in the shape of the keys.
            filled: (batch, keys), False for keys that are not attended to. Default: none.
            attention_mask: As in `forward`.
            at: Queries whose outputs are returned. Default: all queries.
        """
        queries, keys = query.shape[2], key.shape[2]
        bias = None
        if self.positions == "alibi":
            bias = self._alibi_bias(queries, keys, query)
        is_last = queries == 1 and keys > 1  # one query after all keys sees all of them
        y = self.attend(
            query,
            key,
            value,
            combine_masks(filled, attention_mask, bias),
            causal=self.is_causal and not is_last,
            window=None if self.window is None or self.window + 1 >= keys else self.window + 1,
        )
        return self.merge_heads(y, at)

    def _alibi_bias(self, queries: int, keys: int, like: Tensor) -> Tensor:
        """Return the biases of this layer's heads, (heads, queries, keys)."""
        bias = alibi_bias(self.all_heads, queries, keys, like)
        return bias[self.first_head : self.first_head + self.num_heads]

    def initial_state(self, batch: int) -> KVCache:
        """Return an empty KV cache."""
        if not self.is_causal:
            raise NotImplementedError(
                f"{type(self).__name__} with causal=False needs the whole sequence; it has no step"
            )
        weight = self.qkv.weight
        empty = new_zeros(weight, (batch, self.num_kv_heads, 0, self.head_features))
        if self.window is None:
            return KVCache(empty, empty, (), (), ())
        device, backend = weight.device, weight.backend
        lengths = convert_to_tensor([0] * batch, dtype="int64", device=device, backend=backend)
        return KVCache(empty, empty, lengths, (), ())

    def step(self, x: Tensor, state: KVCache | FixedCache) -> tuple[Tensor, KVCache | FixedCache]:
        """Return the output at one position, and the cache with its key and value."""
        self.check_step(x, state)
        if isinstance(state, FixedCache):
            return self._step_fixed(x, state)
        y, state = self.forward(x[:, None], state=state)
        return y[:, 0], state

    def _step_fixed(self, x: Tensor, state: FixedCache) -> tuple[Tensor, FixedCache]:
        """Compute `step` with a cache of constant shape."""
        if self.rope_scaling is not None and self.rope_scaling.by_length:
            raise NotImplementedError(
                f"{type(self).__name__} with {self.rope_scaling!r} depends on the length of the "
                "sequence; it has no step of constant shape"
            )
        query, key, value = self._project(x[:, None], state.lengths[:, None, None], 0)
        state = state.append(key, value)
        bias = None
        if self.positions == "alibi":
            first = self._alibi_bias(1, state.capacity, x)  # by distance, oldest first
            bias = ops.take(first, state.capacity - 1 - state.ages(), axis=2)
        mask = combine_masks(state.is_filled(self.window), None, bias)
        y = self.attend(query, state.keys, state.values, mask)
        return self.merge_heads(y)[:, 0], state

    def _project(
        self, x: Tensor, position: Tensor | None, offset: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values by head.

        Args:
            x: Input, (batch, time, features).
            position: Indices of the positions, (batch, 1, time). None: from `offset` on.
            offset: Index of the first position.
        """
        num_queries, num_keys = self.num_heads, self.num_kv_heads
        projected = self.qkv(x)
        if position is None and self._rotates_all:
            rotation = self._rotation(offset + x.shape[1])
            return ops.rotary_heads(projected, num_queries, num_keys, offset=offset, **rotation)
        if self.qk_norm == "all":
            projected = self._normalize(projected, self.head_features, axis=-1)
        heads = self.split_heads(projected)
        if self.qk_norm == "head":
            heads = self._normalize(heads, 1, axis=1)
        if self.positions != "rope":
            query, key, value = ops.split(heads, [num_queries, num_queries + num_keys], axis=1)
            return query, key, value
        rotated, value = ops.split(heads, [num_queries + num_keys], axis=1)
        rotated = self._rotate(rotated, position, offset)
        query, key = ops.split(rotated, [num_queries], axis=1)
        return query, key, value

    def _normalize(self, heads: Tensor, size: int, axis: int) -> Tensor:
        """Normalize the queries and keys; a head has `size` elements along the axis."""
        ends = [self.num_heads * size, (self.num_heads + self.num_kv_heads) * size]
        query, key, value = ops.split(heads, ends, axis=axis)
        return ops.concat([self.query_norm(query), self.key_norm(key), value], axis=axis)

    def _rotate(self, heads: Tensor, position: Tensor | None, offset: int) -> Tensor:
        """Rotate the first `rope_features` of (batch, heads, time, head features)."""
        if self.rope_features < self.head_features:
            rotated, rest = ops.split(heads, [self.rope_features], axis=-1)
            return ops.concat([self._rotate_all(rotated, position, offset), rest], axis=-1)
        return self._rotate_all(heads, position, offset)

    def _rotate_all(self, heads: Tensor, position: Tensor | None, offset: int) -> Tensor:
        start = offset if position is None else 0
        rotation = self._rotation(offset + heads.shape[2])
        rotated = ops.rope(heads, position, offset=start, **rotation)
        factor = 1 if self.rope_scaling is None else self.rope_scaling.attention_factor
        return rotated if factor == 1 else rotated * factor

    def _rotation(self, length: int) -> dict[str, Any]:
        """Return the arguments of `ops.rope` for sequences of a length."""
        if self.rope_scaling is None:
            return {"base": self.rope_base}
        return {"frequencies": self.rope_scaling.scale(self.rope_base, self.rope_features, length)}

    @property
    def _rotates_all(self) -> bool:
        """Whether queries and keys are only rotated, in all features."""
        return (
            self.positions == "rope"
            and self.qk_norm == "none"
            and self.rope_features == self.head_features
            and (self.rope_scaling is None or self.rope_scaling.attention_factor == 1)
        )


Attention = SelfAttention


@register("layers/mh_attention", aliases=["mh-attention", "multi_head_attention"])
class MultiHeadAttention(SelfAttention):
    r"""Self-attention with 16 heads by default.

    .. math:: y = W_o \, [\mathrm{softmax}(q_1 k_1^\top / \sqrt{d}) v_1, \dots,
        \mathrm{softmax}(q_H k_H^\top / \sqrt{d}) v_H]

    Args:
        features: Number of input and output features. Must be divisible by `num_heads`.
        num_heads: Number of query heads. Default: 16.
        num_kv_heads: Number of key and value heads, each shared by a group of query heads. Must
            divide `num_heads`. Default: `num_heads`.
        causal: Whether positions attend only to themselves and earlier positions. Default: True.
        window: Number of earlier (and, if not causal, later) positions that each position attends
            to. Default: all.
        positions: Position encoding: "rope", "alibi" or "none". Default: "rope".
        rope_base: Base of the angles of "rope". Default: 10000.
        bias: Whether the projections have biases. Default: True.
        dropout: Probability of zeroing an attention weight during training. Default: 0.

    Shape: (batch, time, features) -> (batch, time, features).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> nn.layers.sequence_mixing.MultiHeadAttention(32)(ops.ones((2, 5, 32))).shape
        (2, 5, 32)
    """

    def __init__(
        self,
        features: Size,
        num_heads: Size = 16,
        num_kv_heads: Size | None = None,
        causal: bool = True,
        window: Count | None = None,
        positions: PositionEncoding = "rope",
        rope_base: Positive = 10000.0,
        bias: bool = True,
        dropout: Below1 = 0.0,
    ) -> None:
        super().__init__(
            features, num_heads, num_kv_heads, causal, window, positions, rope_base, bias, dropout
        )
