"""Weights from integers, scaled in place."""

from __future__ import annotations

import torch

from ember_ml._core.packing import row_width
from ember_ml.backend.torch.nesting import in_transform


def dequantize(
    packed: torch.Tensor,
    scale: torch.Tensor,
    shift: torch.Tensor | None = None,
    group_size: int = 64,
    features: int | None = None,
) -> torch.Tensor:
    width = row_width(
        "dequantize",
        str(packed.dtype).rpartition(".")[2],
        tuple(packed.shape),
        tuple(scale.shape),
        None if shift is None else tuple(shift.shape),
        group_size,
        features,
    )
    lead, groups = scale.shape[:-1], scale.shape[-1]
    if packed.dtype is torch.uint8:
        packed = torch.stack((packed & 15, packed >> 4), -1).flatten(-2)[..., :width]
    if groups > 1 and groups * group_size != width:  # the last group is smaller
        scale = scale.repeat_interleave(group_size, -1)[..., :width]
        shift = None if shift is None else shift.repeat_interleave(group_size, -1)[..., :width]
    else:
        packed = packed.reshape(*scale.shape, width // max(1, groups))
        scale, shift = scale.unsqueeze(-1), None if shift is None else shift.unsqueeze(-1)
    weight = packed.to(scale.dtype)
    if torch.is_grad_enabled() or in_transform():
        weight = weight * scale if shift is None else weight * scale + shift
    else:
        weight.mul_(scale)
        weight = weight if shift is None else weight.add_(shift)
    return weight.reshape(*lead, width)
