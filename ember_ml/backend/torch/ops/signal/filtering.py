"""Correlation."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml.backend.torch.causal_convolution import causal_conv1d as causal_conv1d
from ember_ml.backend.torch.causal_convolution import causal_conv1d_silu as causal_conv1d_silu


def correlate(x, y, mode="valid"):
    if x.ndim != 1 or y.ndim != 1 or 0 in (len(x), len(y)):
        raise ShapeError(f"correlate takes two vectors, not shapes {(*x.shape,)} and {(*y.shape,)}")
    if len(y) > len(x):
        return torch.flip(correlate(y, x, mode), (0,)).conj()
    taps = len(y)
    pads = {"full": (taps - 1, taps - 1), "same": (taps // 2, (taps - 1) // 2), "valid": (0, 0)}
    if mode not in pads:
        raise ArgumentError(f"correlate: mode must be 'full', 'same' or 'valid', not {mode!r}")
    return F.conv1d(F.pad(x, pads[mode])[None, None], y.conj()[None, None])[0, 0]
