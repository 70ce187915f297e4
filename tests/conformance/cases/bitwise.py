"""Rows for `ember_ml.ops.bitwise`."""

from __future__ import annotations

import numpy as np

from tests.conformance.fixed import by_dtype, exact, fixed, top
from tests.conformance.table import INTEGERS, binary_cases, case, positive, real, unary_cases

SIGNED = INTEGERS[:4]
for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    key, reference = f"bitwise.{name}", getattr(np, name)
    binary_cases(key, reference, low=-100, high=100)
    case(key, real(5, low=-100, high=100), 6, reference=reference, dtypes=INTEGERS)
    case(key, 6, real(5, low=-100, high=100), reference=reference, dtypes=INTEGERS)
    case(key, real(5, low=-100, high=100), -6, reference=reference, dtypes=SIGNED)
    case(
        key,
        fixed(2**62 + 1, 3),
        fixed(2**62, 2**53 + 1),
        reference=reference,
        dtypes=("int64", "uint64"),
    )
    case(key, fixed(True, False), True, reference=reference, dtypes=("bool",))
unary_cases("bitwise.bitwise_invert", np.bitwise_invert, low=-100, high=100)
case(
    "bitwise.bitwise_invert",
    fixed(2**53 + 1, 0),
    reference=np.bitwise_invert,
    dtypes=("int64", "uint64"),
)

for name in ("bitwise_left_shift", "bitwise_right_shift"):
    key, reference = f"bitwise.{name}", getattr(np, name)
    for first, second in (
        ((), ()),
        ((7,), (7,)),
        ((2, 3), (3,)),
        ((0, 3), (1, 3)),
        ((4, 1, 3), (2, 1)),
    ):
        case(
            key,
            real(*first, low=-100, high=100),
            positive(*second, low=0, high=7),
            reference=reference,
        )
    case(key, real(3, 4, low=-100, high=100, transposed=True), 3, reference=reference)
    case(key, 5, positive(4, low=0, high=2), reference=reference)
beyond = by_dtype(3, lambda dtype: [8 * dtype.itemsize, 8 * dtype.itemsize + 1, 100])
case("bitwise.bitwise_left_shift", fixed(1, 5, 100), beyond, check=exact(0, 0, 0))
case("bitwise.bitwise_right_shift", fixed(1, 5, 100), beyond, check=exact(0, 0, 0))
case(
    "bitwise.bitwise_right_shift",
    fixed(-1, -5, -100),
    beyond,
    check=exact(-1, -1, -1),
    dtypes=SIGNED,
)
for name in ("bitwise_left_shift", "bitwise_right_shift"):
    key, reference = f"bitwise.{name}", getattr(np, name)
    case(key, fixed(1, 5, -3, 100), fixed(-1, -2, -3, -70), reference=reference, dtypes=SIGNED)
    case(key, top(0, 1), fixed(-1, -2), reference=reference, dtypes=SIGNED)
case("bitwise.bitwise_right_shift", top(0, 1), fixed(1, 3), reference=np.bitwise_right_shift)


case("bitwise.count_ones", fixed(0, 1, 7, 100), check=exact(0, 1, 3, 3, dtype="int64"))
for name, width in zip(SIGNED, (8, 16, 32, 64), strict=True):
    case("bitwise.count_ones", fixed(-1, -2), check=exact(width, width - 1), dtypes=(name,))
case(
    "bitwise.count_ones",
    top(0),
    reference=lambda x: np.array([int(x[0]).bit_count()]),
    result="int64",
)
for shape in ((), (0,), (2, 3)):
    case(
        "bitwise.count_ones",
        positive(*shape, low=0, high=100),
        reference=np.bitwise_count,
        result="int64",
    )
