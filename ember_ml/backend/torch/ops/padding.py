"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def pad_constant(
    x: torch.Tensor, widths: Sequence[tuple[int, int]], value: bool | int | float | complex = 0
) -> torch.Tensor:
    if len(widths) != x.ndim:
        raise ValueError(f"{len(widths)} pairs of widths for {x.ndim} axes")
    return torch.constant_pad_nd(x, [width for pair in widths[::-1] for width in pair], value)
