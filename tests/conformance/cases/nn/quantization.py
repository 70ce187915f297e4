"""Rows for `ember_ml.ops.nn.quantization`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import FLOATS, case, integers, positive, real


def integer(row: Any, at: int, four_bits: bool) -> int:
    """Return the integer at a position of a packed row."""
    return int(row[at // 2]) >> 4 * (at % 2) & 15 if four_bits else int(row[at])


def rows(packed: Any, scale: Any, shift: Any, group_size: int, features: int) -> Any:
    """Compute weight by weight; four bits have about half as many integers as features."""
    four_bits = packed.shape[-1] != features
    out = np.zeros((*packed.shape[:-1], features))
    for index in np.ndindex(out.shape):
        *row, at = index
        group = (*row, at // group_size)
        out[index] = integer(packed[tuple(row)], at, four_bits) * scale[group]
        out[index] += 0.0 if shift is None else shift[group]
    return out


def dequantize(packed, scale, shift=None, group_size=64, features=None):
    return rows(packed, scale, shift, group_size, features or packed.shape[-1])


def quantized_linear(x, packed, scale, shift=None, bias=None, group_size=64):
    weight = rows(packed, scale, shift, group_size, x.shape[-1])
    return x @ weight.T + (0.0 if bias is None else bias)


def int8(*shape: int) -> Any:
    return integers(*shape, low=-127, high=127, dtype="int8")


def pairs(*shape: int) -> Any:
    return integers(*shape, low=0, high=255, dtype="uint8")


def steps(*shape: int) -> Any:
    return positive(*shape, low=0.002, high=0.01)


Q = "nn.quantization."
options: dict[str, Any] = {"dtypes": FLOATS, "rtol": 2.0}
case(Q + "dequantize", int8(3, 8), steps(3, 2), reference=dequantize, group_size=4, **options)
case(Q + "dequantize", int8(2, 3, 7), steps(2, 3, 2), reference=dequantize, group_size=4, **options)
case(Q + "dequantize", int8(5), steps(1), real(1), reference=dequantize, **options)
case(Q + "dequantize", int8(0, 8), steps(0, 1), reference=dequantize, **options)
for width, groups in ((8, 2), (7, 2), (3, 1), (5, 2)):
    packed = pairs(3, (width + 1) // 2), steps(3, groups)
    options |= {"reference": dequantize, "group_size": 4, "features": width}
    case(Q + "dequantize", *packed, **options)
    case(Q + "dequantize", *packed, real(3, groups), **options)

options = {"dtypes": FLOATS, "rtol": 4.0, "reference": quantized_linear}
for lead in ((), (3,), (2, 3), (0,)):
    case(Q + "quantized_linear", real(*lead, 32), int8(5, 32), steps(5, 1), **options)
for group_size in (32, 64, 24):  # of a fused kernel, of one group, and of groups of unequal size
    groups, x = -(-64 // group_size), real(2, 64)
    shifts, bias = real(5, groups, low=-0.1, high=0.1), real(5)
    options["group_size"] = group_size
    case(Q + "quantized_linear", x, int8(5, 64), steps(5, groups), None, bias, **options)
    four_bits = x, pairs(5, 32), steps(5, groups)
    case(Q + "quantized_linear", *four_bits, **options)
    case(Q + "quantized_linear", *four_bits, shifts, bias, **options)
    case(Q + "quantized_linear", x, int8(5, 64), steps(5, groups), shifts, **options)
case(
    Q + "quantized_linear",
    real(2, 7),
    pairs(5, 4),
    steps(5, 2),
    real(5, 2),
    **{**options, "group_size": 4},
)
