"""Rotary position embedding."""

from __future__ import annotations

import torch


def rope(
    x: torch.Tensor,
    positions: torch.Tensor | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    interleaved: bool = False,
) -> torch.Tensor:
    if not base > 0 or isinstance(offset, float):
        raise ValueError("base must be positive and offset an integer")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"the shape {tuple(x.shape)} is not (..., time, even features)")
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    pairs = x.shape[-1] // 2
    exponents = torch.arange(pairs, dtype=wide, device=x.device) / -pairs
    if positions is None:
        positions = torch.arange(x.shape[-2], device=x.device)
    angles = (positions + offset).to(wide)[..., None] * base**exponents
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
