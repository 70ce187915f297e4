"""Bitwise operations."""

from __future__ import annotations

import torch
from torch import bitwise_and as bitwise_and
from torch import bitwise_left_shift as bitwise_left_shift
from torch import bitwise_or as bitwise_or
from torch import bitwise_right_shift as bitwise_right_shift
from torch import bitwise_xor as bitwise_xor

from ember_ml.backend.interface import Variants

bitwise_invert = torch.bitwise_not


def count_ones(x: torch.Tensor) -> torch.Tensor:
    """Sum neighboring bits, pairs and nibbles, then all bytes by a multiplication."""
    bits = x.to(torch.int64)
    if x.dtype is not torch.int64:
        bits = bits & ((1 << torch.iinfo(x.dtype).bits) - 1)
    bits = bits - ((bits >> 1) & 0x5555555555555555)
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (bits * 0x0101010101010101) >> 56


_SCALARS = {
    "bitwise_and": bitwise_and,
    "bitwise_left_shift": bitwise_left_shift,
    "bitwise_or": bitwise_or,
    "bitwise_right_shift": bitwise_right_shift,
    "bitwise_xor": bitwise_xor,
}
VARIANTS = Variants(right_scalars=_SCALARS, left_scalars=_SCALARS)
