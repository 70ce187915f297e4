"""Rows for `ember_ml.ops.floating`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import fixed, host, signed
from tests.conformance.table import (
    COMPLEXES,
    FLOATS,
    binary_cases,
    case,
    integers,
    real,
    unary_cases,
)

EXACT = ("float16", "float32", "float64")  # a cast to bfloat16 does not keep the sign of NaN
NUMBERS = (math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5)
binary_cases("floating.copysign", np.copysign, special=False)
case(
    "floating.copysign",
    fixed(*NUMBERS, column=True),
    fixed(*NUMBERS),
    check=signed(np.copysign),
    dtypes=FLOATS,
)
case(
    "floating.copysign",
    fixed(2.0, 3.0),
    fixed(math.nan, -math.nan),
    check=signed(np.copysign),
    dtypes=EXACT,
)
case("floating.copysign", fixed(1.5, -2.0), -0.0, check=signed(np.copysign), dtypes=FLOATS)
case("floating.copysign", 2, fixed(1.5, -0.0), check=signed(np.copysign), dtypes=FLOATS)
unary_cases("floating.signbit", np.signbit, result="bool", special=False)
case("floating.signbit", fixed(*NUMBERS), reference=np.signbit, result="bool", dtypes=FLOATS)
case(
    "floating.signbit",
    fixed(math.nan, -math.nan),
    reference=np.signbit,
    result="bool",
    dtypes=EXACT,
)


def is_next(result, x, y):
    if result.dtype.name == "bfloat16":
        bits = np.asarray(x, np.float32).view(np.uint32).astype(np.int64) >> 16
        outwards = (y > x) == (x > 0)
        want = ((bits + np.where(outwards, 1, -1)) << 16).astype(np.uint32).view(np.float32)
        regular = (x != 0) & (x != y) & np.isfinite(x) & np.isfinite(y)
        np.testing.assert_array_equal(host(result)[regular], want[regular])
        return
    dtype = result.dtype.name
    np.testing.assert_array_equal(host(result), np.nextafter(x.astype(dtype), y.astype(dtype)))


case("floating.nextafter", real(7), real(7), check=is_next, dtypes=FLOATS)
case("floating.nextafter", real(2, 3), real(3), check=is_next, dtypes=FLOATS[2:])
case("floating.nextafter", real(0), real(0), check=is_next, dtypes=FLOATS)
case(
    "floating.nextafter",
    fixed(*NUMBERS, math.nan),
    fixed(0.0, 0.0, 1.0, -1.0, 1.0, -math.inf, 2.5, math.nan, 1.0),
    check=is_next,
    dtypes=EXACT,
)


def is_next_to_one(result, x, y):
    steps = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "float64": 2**-52}
    assert host(result).tolist() == [1 + steps[result.dtype.name], 1 - steps[result.dtype.name] / 2]


case("floating.nextafter", fixed(1.0, 1.0), fixed(2.0, 0.0), check=is_next_to_one, dtypes=FLOATS)

for shape in ((), (0,), (2, 3)):
    case("floating.ldexp", real(*shape), integers(*shape, low=-5, high=5), reference=np.ldexp)
case("floating.ldexp", real(2, 3), integers(3, low=-5, high=5, dtype="int8"), reference=np.ldexp)
case(
    "floating.ldexp",
    fixed(2.0**-120, 2.0**100, 1.5, math.inf),
    fixed(200, -200, 5000, -9, dtype="int64"),
    reference=np.ldexp,
    dtypes=FLOATS[1:],
)
for shape in ((), (0,), (7,), (2, 3)):
    case("floating.frexp", real(*shape), reference=np.frexp, result=("same", "int32"))
case(
    "floating.frexp",
    fixed(0.0, 0.25, -8.0, 1e-3, 65504.0),
    reference=np.frexp,
    result=("same", "int32"),
    dtypes=EXACT,
)
case(
    "floating.frexp",
    fixed(1e-40, 3e38, -(2.0**-149)),
    reference=np.frexp,
    result=("same", "int32"),
    dtypes=("float32", "float64"),
)

unary_cases("floating.nan_to_num", np.nan_to_num, special=False)
case(
    "floating.nan_to_num",
    real(7, special=True),
    reference=np.nan_to_num,
    nan=1.5,
    posinf=2.0,
    neginf=-3.0,
    dtypes=FLOATS,
)


def is_limited(result, x):
    limit = np.finfo(result.dtype.name).max
    assert host(result).tolist() == [0.0, limit, -limit]


case("floating.nan_to_num", fixed(math.nan, math.inf, -math.inf), check=is_limited, dtypes=EXACT)
case(
    "floating.nan_to_num",
    fixed(complex(math.nan, 1), complex(math.inf, math.nan)),
    reference=np.nan_to_num,
    posinf=7.0,
    dtypes=COMPLEXES,
)
