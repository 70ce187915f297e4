"""Rows for `ember_ml.ops.elementwise`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import by_dtype, exact, fixed, host, signed, top
from tests.conformance.table import (
    COMPLEXES,
    FLOATS,
    INTEGERS,
    binary_cases,
    case,
    positive,
    real,
    unary_cases,
)

SIGNED = INTEGERS[:4]
NUMBERS = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5)

binary_cases("elementwise.add", np.add)
binary_cases("elementwise.subtract", np.subtract)
binary_cases("elementwise.multiply", np.multiply)
binary_cases(
    "elementwise.divide", np.divide, dtypes=("int32", *FLOATS, *COMPLEXES), low=0.5, special=False
)
case(
    "elementwise.divide",
    fixed(*NUMBERS, column=True),
    fixed(*NUMBERS),
    check=signed(np.divide),
    dtypes=FLOATS,
)
case("elementwise.divide", fixed(1, 2), 0, reference=np.divide, dtypes=("float32", "int8"))
case("elementwise.divide", 1, real(3, low=1), reference=np.divide)
case("elementwise.divide", 1.5, real(3, low=1), reference=np.divide)


def standard_floor_divide(x, y):
    """Compute with NumPy, and by the standard's floor(x / y) for infinite operands."""
    return np.where(np.isinf(x) | np.isinf(y), np.divide(x, y), np.floor_divide(x, y))


nonzero = positive(2, 3, low=1)
for name, reference in (
    ("floor_divide", np.floor_divide),
    ("remainder", np.remainder),
    ("fmod", np.fmod),
):
    key = f"elementwise.{name}"
    exactly = standard_floor_divide if name == "floor_divide" else reference
    binary_cases(key, reference, low=1, special=False)
    case(key, real(2, 3, low=-100, high=100), nonzero, reference=reference)
    case(
        key,
        real(2, 3, low=-100, high=100),
        fixed(-3, -2, -5),
        reference=reference,
        dtypes=SIGNED + FLOATS,
    )
    case(key, fixed(*NUMBERS, column=True), fixed(*NUMBERS), check=signed(exactly), dtypes=FLOATS)
    case(key, fixed(7, -7, 0), 0, check=exact(0, 0, 0), dtypes=SIGNED)
    case(key, fixed(7, 0), fixed(0, 0), check=exact(0, 0), dtypes=INTEGERS)
    case(key, fixed(2**62 + 5, -(2**62) - 5), fixed(3, 3), reference=reference, dtypes=("int64",))
    case(key, top(5, 0), fixed(3, 7), reference=reference, dtypes=INTEGERS)
    case(key, real(4), 2, reference=reference)
    case(key, real(4), -1.5, reference=reference, dtypes=FLOATS)
    case(key, 7, positive(4, low=1), reference=reference)
case(
    "elementwise.floor_divide",
    fixed(1.0, 6.0),
    fixed(0.1, 0.1),
    reference=np.floor_divide,
    dtypes=("float32",),
)
lowest = by_dtype(1, lambda dtype: [np.iinfo(dtype).min])
case("elementwise.floor_divide", lowest, fixed(-1), reference=lambda x, y: x, dtypes=SIGNED)
case("elementwise.remainder", lowest, fixed(-1), check=exact(0), dtypes=SIGNED)
case("elementwise.fmod", lowest, fixed(-1), check=exact(0), dtypes=SIGNED)


def is_divmod(result, x, y):
    quotient, rest = map(host, result)
    np.testing.assert_allclose(quotient, np.floor_divide(x, y))
    np.testing.assert_allclose(rest, np.remainder(x, y))


case(
    "elementwise.divmod",
    real(2, 3),
    positive(3, low=1),
    check=is_divmod,
    dtypes=(*INTEGERS, "float32"),
)
case("elementwise.divmod", real(0), positive(0), reference=divmod, result=("same", "same"))

for key in ("elementwise.pow", "elementwise.float_power"):
    dtypes = INTEGERS + FLOATS + COMPLEXES
    for first, second in (
        ((), ()),
        ((7,), (7,)),
        ((2, 3), (3,)),
        ((0, 3), (1, 3)),
        ((4, 1, 3), (2, 1)),
    ):
        case(
            key,
            positive(*first, low=1),
            positive(*second, low=1),
            reference=np.power,
            dtypes=dtypes,
        )
    case(key, real(3, 4, transposed=True), 2, reference=np.power, dtypes=dtypes)
    case(key, positive(5, low=1), 0.5, reference=np.power, dtypes=FLOATS)
    case(key, 2, positive(5, low=1), reference=np.power, dtypes=dtypes)
    case(key, 2.0, real(5), reference=np.power, dtypes=FLOATS + COMPLEXES)
    case(
        key,
        fixed(*NUMBERS, 3.0, column=True),
        fixed(*NUMBERS, 3.0),
        check=signed(np.power),
        dtypes=FLOATS,
    )
case("elementwise.pow", fixed(3, 7), fixed(39, 22), reference=np.power, dtypes=("int64", "uint64"))
case(
    "elementwise.pow",
    fixed(2, 1, -1, -1),
    fixed(-1, -5, -2, -3),
    check=exact(0, 1, 1, -1),
    dtypes=SIGNED,
)
case("elementwise.pow", fixed(2, 1, -1), -1, check=exact(0, 1, -1), dtypes=SIGNED)

unary_cases("elementwise.negative", np.negative)
unary_cases("elementwise.positive", np.positive)
unary_cases("elementwise.abs", np.abs, result="real")
unary_cases("elementwise.sign", np.sign)
unary_cases("elementwise.square", np.square)
unary_cases(
    "elementwise.reciprocal", np.reciprocal, low=0.5, dtypes=(*FLOATS, *COMPLEXES, "uint8", "int64")
)
case("elementwise.negative", fixed(0.0, -0.0), check=signed(np.negative), dtypes=FLOATS)
case("elementwise.abs", fixed(-0.0, -math.inf), check=signed(np.abs), dtypes=FLOATS)
case(
    "elementwise.abs",
    fixed(3e38 + 1e38j, complex(math.inf, math.nan)),
    reference=np.abs,
    dtypes=COMPLEXES,
    result="real",
)
case(
    "elementwise.square",
    fixed(2**31 + 1),
    check=exact((2**31 + 1) ** 2),
    dtypes=("int64", "uint64"),
)

for shapes in (((), (), ()), ((2, 3), (3,), (2, 1)), ((0,), (1,), (0,))):
    case(
        "elementwise.multiply_add",
        *(real(*shape) for shape in shapes),
        reference=lambda x, y, z: x * y + z,
    )
    case(
        "elementwise.lerp",
        *(real(*shape) for shape in shapes),
        reference=lambda x, y, w: x + w * (y - x),
    )
case("elementwise.multiply_add", real(3), 2, 1, reference=lambda x, y, z: x * y + z)
case(
    "elementwise.lerp",
    fixed(1e4, 0.25),
    fixed(0.125, 3.0),
    1.0,
    check=exact(0.125, 3.0),
    dtypes=FLOATS,
)

binary_cases("elementwise.heaviside", np.heaviside)
for name, reference in (("gcd", np.gcd), ("lcm", np.lcm)):
    binary_cases(f"elementwise.{name}", reference, low=-5, high=5)
    case(f"elementwise.{name}", fixed(0, 12, 0, 18), fixed(0, 18, 5, -12 % 30), reference=reference)
case(
    "elementwise.gcd",
    fixed(2**62, 7540113804746346429),
    fixed(2**40, 4660046610375530309),
    reference=np.gcd,
    dtypes=("int64",),
)
