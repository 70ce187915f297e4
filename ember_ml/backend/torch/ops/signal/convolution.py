"""Convolutions."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F

from ember_ml.backend.windows import check_steps

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def flat(padding: Any) -> list[int]:
    """Return the pairs in the order of `F.pad`: last axis first."""
    return [pad for pair in reversed(padding) for pad in pair]


def conv_general(x, weight, bias, stride, padding, dilation, groups):
    check_steps(stride, dilation, groups)
    lows = [low for low, high in padding if low == high]
    if len(lows) < len(padding):
        x, lows = F.pad(x, flat(padding)), [0] * len(padding)
    return _CONV[len(stride)](x, weight, bias, stride, lows, dilation, groups)
