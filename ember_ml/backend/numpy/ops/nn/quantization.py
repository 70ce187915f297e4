"""Weights from integers, in place."""

from __future__ import annotations

import numpy as np

from ember_ml._core.packing import row_width


def dequantize(
    packed: np.ndarray,
    scale: np.ndarray,
    shift: np.ndarray | None = None,
    group_size: int = 64,
    features: int | None = None,
) -> np.ndarray:
    shifts = None if shift is None else shift.shape
    dtype = packed.dtype.name
    width = row_width("dequantize", dtype, packed.shape, scale.shape, shifts, group_size, features)
    groups = scale.shape[-1]
    if dtype == "int8":
        weight = packed.astype(scale.dtype)
    else:
        pairs = np.empty((*packed.shape, 2), scale.dtype)
        pairs[..., 0], pairs[..., 1] = packed & 15, packed >> 4
        weight = pairs.reshape(*packed.shape[:-1], 2 * packed.shape[-1])[..., :width]
    if groups > 1 and groups * group_size != width:  # the last group is smaller
        scale = scale.repeat(group_size, axis=-1)[..., :width]
        shift = None if shift is None else shift.repeat(group_size, axis=-1)[..., :width]
    else:
        weight = weight.reshape(*scale.shape, width // max(1, groups))
        scale, shift = scale[..., None], None if shift is None else shift[..., None]
    with np.errstate(over="ignore"):
        weight *= scale
        if shift is not None:
            weight += shift
    return weight.reshape(*packed.shape[:-1], width)
