"""Pooling."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ember_ml.backend.torch.ops.signal.convolution import flat

_MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVG = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def max_pool_general(x, kernel, stride, padding, dilation):
    lows = [low for low, _ in padding]
    if any(
        low != high or 2 * low > taps for (low, high), taps in zip(padding, kernel, strict=True)
    ):
        x, lows = F.pad(x, flat(padding), value=-torch.inf), [0] * len(padding)
    return _MAX[len(kernel)](x, kernel, stride, lows, dilation)


def avg_pool_general(x, kernel, stride, padding):
    lows = [low for low, high in padding if low == high]
    if len(lows) < len(padding):
        x, lows = F.pad(x, flat(padding)), [0] * len(padding)
    if x.dtype.itemsize < 4 and len(kernel) == 3:  # torch has no such kernel
        return F.avg_pool3d(x.float(), kernel, stride, lows).to(x.dtype)
    return _AVG[len(kernel)](x, kernel, stride, lows)
