"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx


def pad_constant(
    x: mx.array, widths: Sequence[tuple[int, int]], value: bool | int | float | complex = 0
) -> mx.array:
    return mx.pad(x, widths, constant_values=mx.array(value, x.dtype))
