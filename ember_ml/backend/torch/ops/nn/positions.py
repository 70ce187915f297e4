"""Rotary position embedding."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

_SHORTEST = 64
"""Smallest number of positions of a table."""


def rope(
    x: torch.Tensor,
    positions: torch.Tensor | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
    frequencies: Sequence[float] | None = None,
) -> torch.Tensor:
    if not base > 0 or isinstance(offset, float):
        raise ValueError("base must be positive and offset an integer")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"the shape {tuple(x.shape)} is not (..., time, even features)")
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    pairs = x.shape[-1] // 2
    if frequencies is not None and len(frequencies) != pairs:
        raise ValueError(f"got {len(frequencies)} frequencies for {pairs} pairs of features")
    speeds = None if frequencies is None else tuple(frequencies)
    is_plain = positions is None and not interleaved and offset >= 0 and pairs > 0
    if is_plain and not torch.compiler.is_compiling():
        end = offset + x.shape[-2]
        count = max(_SHORTEST, 1 << (end - 1).bit_length())
        cos, sin = _table(base, speeds, pairs, count, wide, x.device)
        wide_x = x.to(wide)
        turned = torch.roll(wide_x, pairs, -1) * sin[offset:end]
        return torch.addcmul(turned, wide_x, cos[offset:end]).to(x.dtype)
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
