"""Optimizer state in 8 bits: `encode_state` and `decode_state` of `Optimization`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from ember_ml.backend.interface import STATE_BLOCK


def encode_state(
    xs: Sequence[torch.Tensor], like: Sequence[torch.Tensor]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return 8-bit codes, in rows of STATE_BLOCK elements, and the scale of each row."""
    pairs = [_encode(x, y.dtype) for x, y in zip(xs, like, strict=True)]
    return [codes for codes, _ in pairs], [scales for _, scales in pairs]


def _encode(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    flat = x.reshape(-1)
    rows = pad(flat, (0, -flat.numel() % STATE_BLOCK)).view(-1, STATE_BLOCK)
    sizes = rows.abs()
    scales = sizes.amax(1, keepdim=True)
    sizes = sizes.div_(scales.masked_fill(scales == 0, 1.0)).sqrt_()
    if dtype is torch.int8:
        return sizes.mul_(127.0).round_().copysign_(rows).to(dtype), scales
    codes = sizes.sqrt_().mul_(255.0).round_()
    return torch.maximum(codes, rows != 0).to(dtype), scales


def decode_state(
    codes: Sequence[torch.Tensor],
    scales: Sequence[torch.Tensor],
    shapes: Sequence[tuple[int, ...]],
) -> list[torch.Tensor]:
    """Return new float32 arrays of the given shapes from codes and scales."""
    return [_decode(*each) for each in zip(codes, scales, shapes, strict=True)]


def _decode(codes: torch.Tensor, scales: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    rows = codes.float()
    if codes.dtype is torch.int8:
        rows = rows.mul_(1.0 / 127.0)
        rows = rows.mul_(rows.abs())
    else:
        rows = rows.mul_(1.0 / 255.0).square_().square_()
    return rows.mul_(scales).view(-1)[: math.prod(shape)].view(shape)
