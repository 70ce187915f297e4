"""Adaptive pooling and interpolation."""

from __future__ import annotations

import torch
from torch.nn import functional as F

_ADAPTIVE = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def adaptive_avg_pool_general(x, output_size):
    return _ADAPTIVE[len(output_size)](x, output_size)


def _nearest(x: torch.Tensor, axis: int, count: int, scale: float | None) -> list[int]:
    """Compute source indices in integers; torch's own rounds a float32 quotient."""
    length = x.shape[axis]
    if scale is None:
        at = torch.arange(count, device=x.device) * length // count
    else:
        places = [min(int(place / scale), length - 1) for place in range(count)]
        at = torch.tensor(places, device=x.device)
    return torch.index_select(x, axis, at)


def interpolate_general(x, size, scale, mode, align_corners):
    if mode == "nearest":
        for axis, count in enumerate(size, 2):
            x = _nearest(x, axis, count, None if scale is None else scale[axis - 2])
        return x
    target = {"size": size} if scale is None else {"scale_factor": scale}
    return F.interpolate(x, **target, mode=_LINEAR[len(size)], align_corners=align_corners)
