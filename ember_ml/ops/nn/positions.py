"""Position encodings for attention: rotary embeddings and ALiBi."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import MaskLike, composite
from ember_ml._core.dtype import float32, float64
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops._composite import check_real, in_float32

__all__ = ["alibi_bias", "rope", "rotary_heads"]


@composite(rule=rules.REAL_FLOAT)
@in_float32
def rope(
    x: TensorLike,
    positions: MaskLike | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> Tensor:
    """Return x with rotary position embedding: pairs of features rotated by position.

    Pair i of n at position t rotates by t * base^(-i / n).

    Args:
        x: (..., time, features), with an even number of features.
        positions: Broadcasts to (..., time). Default: 0, 1, 2, ...
        base: Approximate ratio of the longest to the shortest period.
        offset: Added to the positions: the number of preceding time steps.
        interleaved: Whether a pair is two neighbors; else one feature from each half.
        frequencies: Angle per position of each pair, which replaces `base`. Default: those of
            `base`.

    Reference: Su et al., "RoFormer", 2021.
    """
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ShapeError(f"rope: x has shape {x.shape}; expected (..., time, even features)")
    check_real("rope", base=base)
    if not base > 0:
        raise ArgumentError(f"rope: base must be positive; got {base}")
    if isinstance(offset, float):
        raise ArgumentTypeError(f"rope: offset={offset!r} must be an integer")
    pairs = x.shape[-1] // 2
    if frequencies is None:
        frequencies = [base ** (-pair / pairs) for pair in range(pairs)]
    if len(frequencies) != pairs:
        raise ArgumentError(
            f"rope: got {len(frequencies)} frequencies for {pairs} pairs of features"
        )
    cos, sin = _turns(x, positions, frequencies, offset)
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., :pairs], x[..., pairs:]
    turned = [first * cos - second * sin, first * sin + second * cos]
    if interleaved:
        return ops.reshape(ops.stack(turned, axis=-1), x.shape)
    return ops.concat(turned, axis=-1)


def _turns(
    x: Tensor, positions: Tensor | None, frequencies: Sequence[float], offset: int
) -> tuple[Tensor, Tensor]:
    """Return the cosine and sine of the angles: (..., time, pairs)."""
    dtype = float64 if x.dtype is float64 else float32
    if positions is None:
        positions = convert_to_tensor(range(x.shape[-2]), backend=x.backend)
    angles = ops.astype(positions + offset, dtype)[..., None] * convert_to_tensor(
        list(frequencies), dtype=dtype, backend=x.backend
    )
    return ops.cos(angles), ops.sin(angles)


@composite(rule=rules.REAL_FLOAT)
def rotary_heads(
    x: TensorLike,
    num_heads: int,
    num_kv_heads: int | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    frequencies: Sequence[float] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values by head; queries and keys have rotary position embedding.

    The results are (batch, heads, time, head features), and pair the two halves of a head.

    Args:
        x: Projections, (batch, time, (num_heads + 2 * num_kv_heads) * head features): the heads of
            the queries, then of the keys, then of the values.
        num_heads: Number of query heads.
        num_kv_heads: Number of key and value heads. Default: `num_heads`.
        base: As in `rope`.
        offset: As in `rope`.
        frequencies: As in `rope`.
    """
    num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
    count = num_heads + 2 * num_kv_heads
    if x.ndim != 3 or num_heads < 1 or num_kv_heads < 1 or x.shape[-1] % (2 * count):
        raise ShapeError(
            f"rotary_heads: x has shape {x.shape}; expected (batch, time, features), where each of "
            f"{num_heads} + 2 * {num_kv_heads} heads has an even number of features"
        )
    heads = ops.reshape(x, (*x.shape[:2], count, x.shape[-1] // count))
    rotated, value = ops.split(ops.permute_dims(heads, (0, 2, 1, 3)), [count - num_kv_heads], 1)
    rotated = rope(rotated, base=base, offset=offset, frequencies=frequencies)
    query, key = ops.split(rotated, [num_heads], axis=1)
    return query, key, value


def alibi_bias(
    num_heads: int,
    queries: int,
    keys: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """Return an attention mask that decreases linearly with distance: (heads, queries, keys).

    Each head has its own slope. The last query is at the position of the last key.

    Args:
        num_heads: Number of heads.
        queries: Number of queries.
        keys: Number of keys. Default: `queries`.
        dtype: Data type of the result. Default: float32.
        device: Device of the result. Default: the device of new tensors.

    Reference: Press et al., "Train Short, Test Long", 2022.
    """
    keys = queries if keys is None else keys
    if num_heads < 1:
        raise ArgumentError(f"alibi_bias: num_heads must be at least 1; got {num_heads}")
    key = ops.arange(keys, dtype=float32, device=device)
    query = ops.arange(keys - queries, keys, dtype=float32, device=device)
    # compilers can trace single numbers, but not a list
    slopes = ops.stack([ops.full((), x, dtype=float32, device=device) for x in _slopes(num_heads)])
    bias = ops.abs(query[:, None] - key) * -slopes[:, None, None]
    return ops.astype(bias, float32 if dtype is None else dtype)


def _slopes(num_heads: int) -> list[float]:
    """Return powers of 2^(-8 / heads); between powers of two, every other slope of the next one."""
    power = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    if power < num_heads:
        slopes += _slopes(2 * power)[0::2][: num_heads - power]
    return slopes
