"""Rotary position embedding."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from ember_ml.backend import native_heads
from ember_ml.backend.torch.fusion import linear
from ember_ml.backend.torch.native import accepted_frame
from ember_ml.backend.torch.ops._kernel_calls import is_served

_SHORTEST = 64
"""Smallest number of positions of a table."""

Turns = tuple[torch.Tensor, torch.Tensor]
Heads = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def rope(
    x: torch.Tensor,
    positions: torch.Tensor | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> torch.Tensor:
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"the shape {tuple(x.shape)} is not (..., time, even features)")
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    pairs = x.shape[-1] // 2
    speeds = _checked(pairs, base, offset, frequencies)
    is_plain = positions is None and not interleaved and offset >= 0 and pairs > 0
    in_mode = torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack()
    if is_plain and not in_mode:  # a table must not contain the tensors of a mode
        cos, sin = _turns(base, speeds, pairs, offset, x.shape[-2], wide, x.device)
        wide_x = x.to(wide)
        return torch.addcmul(torch.roll(wide_x, pairs, -1) * sin, wide_x, cos).to(x.dtype)
    if positions is None:
        positions = torch.arange(x.shape[-2], device=x.device)
    angles = (positions + offset).to(wide)[..., None] * _speeds(base, speeds, pairs, wide, x.device)
    cos, sin = angles.cos(), angles.sin()
    if interleaved:
        first, second = x.to(wide).unflatten(-1, (pairs, 2)).unbind(-1)
        turned = torch.stack([first * cos - second * sin, first * sin + second * cos], -1).flatten(
            -2
        )
    else:
        first, second = x.to(wide).split(pairs, -1) if pairs else (x.to(wide), x.to(wide))
        turned = torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
    return turned.to(x.dtype)


def _checked(
    pairs: int, base: float, offset: int, frequencies: Sequence[float] | None
) -> tuple[float, ...] | None:
    """Return the frequencies; raise an error if an argument of the rotation is invalid."""
    if not base > 0 or isinstance(offset, float):
        raise ValueError("base must be positive and offset an integer")
    if frequencies is not None and len(frequencies) != pairs:
        raise ValueError(f"got {len(frequencies)} frequencies for {pairs} pairs of features")
    return None if frequencies is None else tuple(frequencies)


def rotary_heads(
    x: torch.Tensor,
    num_heads: int,
    num_kv_heads: int | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    frequencies: Sequence[float] | None = None,
) -> Heads:
    counts = num_heads, num_heads if num_kv_heads is None else num_kv_heads
    total = counts[0] + 2 * counts[1]
    if x.ndim != 3 or min(counts) < 1 or x.shape[2] % (2 * total):
        raise ValueError(f"{total} heads of even size do not fit the shape {tuple(x.shape)}")
    size = x.shape[2] // total
    speeds = _checked(size // 2, base, offset, frequencies)
    if offset >= 0 and is_served(x, least=1):
        rows = _count(offset + x.shape[1])
        turns = *_kernel_table(base, speeds, size // 2, rows, x.dtype, x.device), offset
        again = functools.partial(rotary_heads, base=base, offset=offset, frequencies=speeds)
        transpose = functools.partial(_join, turns, again)
        return linear(functools.partial(_split, turns, counts), transpose, x)
    heads = x.unflatten(2, (total, size)).transpose(1, 2)
    rotated, value = heads.split((counts[0] + counts[1], counts[1]), 1)
    rotated = rope(rotated, base=base, offset=offset, frequencies=speeds)
    query, key = rotated.split(counts, 1)
    return query, key, value


def _split(turns: native_heads.Turns, counts: tuple[int, int], x: torch.Tensor) -> Heads:
    """Return queries, keys and values by a kernel."""
    (batch, time, _), size = x.shape, 2 * turns[0].shape[1]
    parts = []
    for count in (*counts, counts[1]):
        shape, row = (batch, count, time, size), count * size
        parts.append(x.new_empty_strided(shape, (time * row, size, row, 1)))
    native_heads.split(accepted_frame(x), x, turns, parts)
    return parts[0], parts[1], parts[2]


def _join(
    turns: native_heads.Turns, again: Callable[..., Heads], *g: torch.Tensor
) -> tuple[torch.Tensor]:
    """Return the gradient of x, by a kernel.

    Args:
        turns: Cosines, sines and the first position.
        again: `rotary_heads` with its options: the gradient of the gradient.
        g: Gradients of queries, keys and values.
    """
    if not is_served(*g, least=1):  # a mode since the forward pass, or switched off
        start, end = turns[2], turns[2] + g[0].shape[2]
        cos, sin = turns[0][start:end], turns[1][start:end]
        first, second = torch.cat(g[:2], 1).chunk(2, -1)
        rotated = torch.cat([first * cos + second * sin, second * cos - first * sin], -1)
        joined = torch.cat([rotated, g[2]], 1).transpose(1, 2)
        batch, time, heads, size = joined.shape
        return (joined.reshape(batch, time, heads * size),)  # batched gradients have no flatten

    def run(*g: torch.Tensor) -> torch.Tensor:
        return native_heads.join(accepted_frame(*g), turns, g)

    counts = g[0].shape[1], g[1].shape[1]
    return (linear(run, lambda x: again(x, *counts), *g),)


def _turns(
    base: float,
    frequencies: tuple[float, ...] | None,
    pairs: int,
    offset: int,
    length: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Turns:
    """Return cosines and signed sines of positions from `offset` on, (length, 2 * pairs)."""
    end = offset + length
    cos, sin = _table(base, frequencies, pairs, _count(end), dtype, device)
    return cos[offset:end], sin[offset:end]


def _count(positions: int) -> int:
    """Return the number of positions of a table that has at least some."""
    return max(_SHORTEST, 1 << (positions - 1).bit_length())


@functools.lru_cache(maxsize=16)
def _kernel_table(
    base: float,
    frequencies: tuple[float, ...] | None,
    pairs: int,
    count: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Turns:
    """Return cosines and sines of the first positions as the kernels take them, (count, pairs)."""
    with torch.inference_mode(False):
        cos, sin = _table(base, frequencies, pairs, count, dtype, device)
        return cos[:, pairs:], sin[:, pairs:]


def _speeds(
    base: float,
    frequencies: tuple[float, ...] | None,
    pairs: int,
    dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    """Return the angle of each pair per position."""
    if frequencies is None:
        return base ** (torch.arange(pairs, dtype=dtype, device=device) / -pairs)
    return torch.tensor(frequencies, dtype=dtype, device=device)


@functools.lru_cache(maxsize=16)
def _table(
    base: float,
    frequencies: tuple[float, ...] | None,
    pairs: int,
    count: int,
    dtype: torch.dtype,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosines and signed sines of the first positions, (count, 2 * pairs)."""
    with torch.inference_mode(False), torch.no_grad():  # the table outlives the caller's mode
        speeds = _speeds(base, frequencies, pairs, dtype, device)
        angles = torch.arange(count, device=device).to(dtype)[:, None] * speeds
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([cos, cos], -1), torch.cat([-sin, sin], -1)
