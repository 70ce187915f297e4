"""Contractions of integers, exact modulo the dtype's range; MLX has them for floats only."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx

INTEGERS = frozenset(
    (mx.int8, mx.int16, mx.int32, mx.int64, mx.uint8, mx.uint16, mx.uint32, mx.uint64)
)


def _limbs(x: mx.array, width: int) -> list[Any]:
    """Return the digits of x in base 2**width, lowest first, as float64 (CPU only)."""
    bits = 8 * x.dtype.size
    wide = x.astype(mx.uint64)
    mask = mx.array((1 << width) - 1, mx.uint64)
    digits = [mx.right_shift(wide, mx.array(at, mx.uint64)) & mask for at in range(0, bits, width)]
    return [digit.astype(mx.float64, stream=mx.cpu) for digit in digits]


def exact(product: Callable[[Any, Any], Any], x: mx.array, y: mx.array) -> mx.array:
    """Return a bilinear product of two integer arrays of one dtype.

    Digits of 16 bits have products below 2**32, of which float64 sums 2**21 exactly; longer sums
    take digits of 8 bits.
    """
    width = 16 if x.size <= 2**21 else 8
    first, second = _limbs(x, width), _limbs(y, width)
    total = mx.array(0, mx.uint64)
    for place in range(len(first)):
        for at in range(place + 1):
            part = product(first[at], second[place - at]).astype(mx.uint64, stream=mx.cpu)
            total = total + mx.left_shift(part, mx.array(width * place, mx.uint64))
    return total.astype(x.dtype)


def exact_einsum(tensors: list[Any], subscripts: str) -> mx.array:
    """Return the einsum of integer arrays, two at a time."""
    terms, arrow, result = subscripts.partition("->")
    parts = terms.split(",")
    if len(parts) != len(tensors) or len(parts) == 1:
        return mx.einsum(subscripts, *tensors).astype(tensors[0].dtype)
    if not arrow:
        once = sorted({label for label in terms if label.isalpha() and terms.count(label) == 1})
        result = "..." * ("..." in terms) + "".join(once)
    while len(parts) > 2:
        pair, later = "".join(parts[:2]), "".join(parts[2:]) + result
        remaining = "".join(sorted({label for label in pair if label.isalpha() and label in later}))
        merged = "..." * ("..." in pair) + remaining
        step = partial(mx.einsum, f"{parts[0]},{parts[1]}->{merged}", stream=mx.cpu)
        tensors = [exact(step, *tensors[:2]), *tensors[2:]]
        parts = [merged, *parts[2:]]
    return exact(partial(mx.einsum, f"{parts[0]},{parts[1]}->{result}", stream=mx.cpu), *tensors)
