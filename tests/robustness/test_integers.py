"""Integer ops at the ends of each dtype's range, compared with Python's exact integers."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.dtype import INTEGER_RANGES
from ember_ml.nn import tensor
from tests.backends import has_dtype

DTYPES = [dtype.name for dtype in INTEGER_RANGES]


def power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 2**64)
    return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)


BINARY = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": lambda x, y: x // y if y else 0,
    "remainder": lambda x, y: x % y if y else 0,
    "fmod": lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else 0,
    "pow": power,
    "gcd": math.gcd,
    "lcm": math.lcm,
    "maximum": max,
    "minimum": min,
    "bitwise_left_shift": lambda x, y: x << y if 0 <= y < 64 else 0,
    "bitwise_right_shift": lambda x, y: x >> y if 0 <= y < 64 else -(x < 0),
}
UNARY = {
    "abs": abs,
    "negative": operator.neg,
    "square": lambda x: x * x,
    "sign": lambda x: (x > 0) - (x < 0),
    "bitwise_invert": operator.invert,
    "floor": int,
    "ceil": int,
    "trunc": int,
}


def edges(dtype: str) -> list[int]:
    """Return the ends of the range, numbers near zero, and numbers near the number of bits."""
    info = np.iinfo(dtype)
    near = {info.min, info.min + 1, -info.bits, -7, -2, -1, 0, 1, 2, 6, info.bits - 1, info.bits}
    near |= {info.max // 10 * 10 + 5, info.max - 1, info.max}
    return sorted(value for value in near if info.min <= value <= info.max)


def wrapped(value: int, dtype: str) -> int:
    """Return the value modulo the number of values of the dtype, as two's complement."""
    info = np.iinfo(dtype)
    return (value - int(info.min)) % 2**info.bits + int(info.min)


def known(backend: str) -> list[str]:
    """Return the integer dtypes of the backend."""
    return [dtype for dtype in DTYPES if has_dtype(backend, dtype)]


@pytest.mark.parametrize("name", BINARY)
def test_binary(backend: str, name: str) -> None:
    for dtype in known(backend):
        pairs = list(itertools.product(edges(dtype), repeat=2))
        x, y = (tensor.array(np.array(side, dtype)) for side in zip(*pairs, strict=True))
        with np.errstate(all="ignore"):
            got = getattr(ops, name)(x, y)
        want = [wrapped(BINARY[name](*pair), dtype) for pair in pairs]
        assert got.dtype == dtype
        wrong = [row for row in zip(pairs, got.tolist(), want, strict=True) if row[1] != row[2]]
        assert not wrong, f"{dtype}: (operands), result, expected: {wrong[:5]}"


@pytest.mark.parametrize("name", BINARY)
def test_a_python_number_is_an_operand_like_any_other(backend: str, name: str) -> None:
    for dtype in known(backend):
        numbers = edges(dtype)
        x = tensor.array(np.array(numbers, dtype))
        for number in numbers:
            with np.errstate(all="ignore"):
                got = getattr(ops, name)(x, number).tolist(), getattr(ops, name)(number, x).tolist()
            right = [wrapped(BINARY[name](value, number), dtype) for value in numbers]
            left = [wrapped(BINARY[name](number, value), dtype) for value in numbers]
            assert got == (right, left), f"{dtype}: {number}"


@pytest.mark.parametrize("name", UNARY)
def test_unary(backend: str, name: str) -> None:
    for dtype in known(backend):
        with np.errstate(all="ignore"):
            got = getattr(ops, name)(tensor.array(np.array(edges(dtype), dtype)))
        assert got.tolist() == [wrapped(UNARY[name](value), dtype) for value in edges(dtype)], dtype


@pytest.mark.parametrize("decimals", [-20, -19, -18, -9, -5, -3, -2, -1, 0, 2])
def test_round_goes_through_no_float(backend: str, decimals: int) -> None:
    for dtype in known(backend):
        with np.errstate(all="ignore"):
            got = ops.round(tensor.array(np.array(edges(dtype), dtype)), decimals)
        assert got.dtype == dtype
        want = [wrapped(round(value, decimals), dtype) for value in edges(dtype)]
        assert got.tolist() == want, dtype
