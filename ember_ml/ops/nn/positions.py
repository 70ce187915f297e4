"""Positions told to attention: rotations of queries and keys, and biases of scores."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core import rules
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dispatch import MaskLike, composite
from ember_ml._core.dtype import float32, float64
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import DTypeLike, Tensor, TensorLike
from ember_ml.ops.nn._precision import in_float32

__all__ = ["alibi_bias", "rope"]


@composite(rule=rules.REAL_FLOAT)
@in_float32
def rope(
    x: TensorLike,
    positions: MaskLike | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
) -> Tensor:
    """Rotary position embedding: each pair of features turned by an angle that grows with the position.

    Pair i of n at the position t turns by t * base^(-i / n).

    Args:
        x: (..., time, features); the features are even in number.
        positions: broadcasts to (..., time); else 0, 1, 2 ...
        base: the ratio of the slowest pair's period to the fastest's, nearly.
        offset: added to the positions: the length of what has gone before.
        interleaved: whether a pair is two neighbours, rather than two from the two halves of the features.

    Reference: Su et al., "RoFormer", 2021.
    """
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ShapeError(f"rope takes (..., time, features) with even features, not {x.shape}")
    cos, sin = _turns(x, positions, base, offset)
    if interleaved:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    turned = [first * cos - second * sin, first * sin + second * cos]
    if interleaved:
        return ops.reshape(ops.stack(turned, axis=-1), x.shape)
    return ops.concat(turned, axis=-1)


def _turns(x: Tensor, positions: Tensor | None, base: float, offset: int) -> tuple[Tensor, Tensor]:
    """cos and sin of the angles: (..., time, pairs)."""
    dtype = float64 if x.dtype is float64 else float32
    pairs = x.shape[-1] // 2
    speeds = [base ** (-pair / pairs) for pair in range(pairs)]
    if positions is None:
        positions = convert_to_tensor(range(x.shape[-2]), backend=x.backend)
    angles = ops.astype(positions + offset, dtype)[..., None] * convert_to_tensor(
        speeds, dtype=dtype, backend=x.backend
    )
    return ops.cos(angles), ops.sin(angles)


def alibi_bias(
    num_heads: int,
    queries: int,
    keys: int | None = None,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
) -> Tensor:
    """A mask for attention that falls with distance, at a slope of each head's own: (heads, queries, keys).

    The last query stands at the last key. Reference: Press et al., "Train Short, Test Long", 2022.
    """
    keys = queries if keys is None else keys
    dtype = float32 if dtype is None else dtype
    slopes = convert_to_tensor(_slopes(num_heads), dtype=dtype, device=device)[:, None, None]
    where = convert_to_tensor(range(keys), dtype=dtype, device=device)
    return -slopes * ops.abs(where[keys - queries :, None] - where)


def _slopes(num_heads: int) -> list[float]:
    """Powers of 2^(-8 / heads); between powers of two, every other slope of the next one."""
    power = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    if power < num_heads:
        slopes += _slopes(2 * power)[0::2][: num_heads - power]
    return slopes
