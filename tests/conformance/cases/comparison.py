"""Rows for `ember_ml.ops.comparison`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import exact, fixed, top
from tests.conformance.table import (
    COMPLEXES,
    FLOATS,
    INTEGERS,
    binary_cases,
    case,
    real,
    unary_cases,
)

for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    key, reference = f"comparison.{name}", getattr(np, name)
    binary_cases(key, reference, low=0, high=2, result="bool")
    case(key, real(2, 3, low=0, high=2), 1, reference=reference, result="bool")
    case(key, 1, real(2, 3, low=0, high=2), reference=reference, result="bool")
    case(key, fixed(0.5, 1.0, math.nan), 0.5, reference=reference, result="bool", dtypes=FLOATS)
    case(key, 0.5, fixed(0.5, 1.0, math.nan), reference=reference, result="bool", dtypes=FLOATS)
    case(key, fixed(0, 1, 2), 0.5, reference=reference, result="bool", dtypes=INTEGERS)
    case(key, 1.5, fixed(0, 1, 2), reference=reference, result="bool", dtypes=INTEGERS)
    case(key, fixed(0, 1, 2), -1, reference=reference, result="bool", dtypes=INTEGERS[:4] + FLOATS)
    case(
        key,
        fixed(2**53, 2**53),
        fixed(2**53 + 1, 2**53),
        reference=reference,
        result="bool",
        dtypes=("int64", "uint64"),
    )
    case(
        key,
        fixed(2**53 + 1, 1),
        2**53,
        reference=reference,
        result="bool",
        dtypes=("int64", "uint64"),
    )
    case(key, top(0, 1), top(1, 1), reference=reference, result="bool", dtypes=INTEGERS)
    case(key, fixed(True, False), False, reference=reference, result="bool", dtypes=("bool",))
case(
    "comparison.equal",
    fixed(0.1),
    0.1,
    check=exact(True, dtype="bool"),
    dtypes=FLOATS[:1] + FLOATS[2:],
)

for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "isreal"):
    key, reference = f"comparison.{name}", getattr(np, name)
    unary_cases(key, reference, result="bool")
    case(
        key,
        fixed(math.nan, math.inf, -math.inf, 0.0),
        reference=reference,
        result="bool",
        dtypes=FLOATS,
    )
    if name in ("isnan", "isinf", "isfinite", "isreal"):
        numbers = (
            complex(math.nan, 1),
            complex(1, math.nan),
            complex(math.inf, math.nan),
            complex(1, -math.inf),
            1 + 1j,
            2 + 0j,
        )
        case(key, fixed(*numbers), reference=reference, result="bool", dtypes=COMPLEXES)

for name in ("logical_and", "logical_or", "logical_xor"):
    key, reference = f"comparison.{name}", getattr(np, name)
    binary_cases(key, reference, low=0, high=1, result="bool")
    case(key, fixed(True, False), True, reference=reference, result="bool", dtypes=("bool",))
    case(
        key,
        fixed(0.0, -0.0, math.nan, 2.0, column=True),
        fixed(0.0, 3.0),
        reference=reference,
        result="bool",
        dtypes=FLOATS,
    )
unary_cases("comparison.logical_not", np.logical_not, low=0, high=1, result="bool")

X = (1.0, 1.0, 100.0, math.inf, math.inf, math.nan, 0.0)
Y = (1.0, 1.5, 101.0, math.inf, -math.inf, math.nan, 2**-10)
for options in ((), (0.02,), (1e-5, 0.01), (1e-5, 1e-8, True), (0.0, 0.0)):
    for name, reference in (("isclose", np.isclose), ("allclose", np.allclose)):
        case(
            f"comparison.{name}",
            fixed(*X),
            fixed(*Y),
            *options,
            reference=reference,
            result="bool",
            dtypes=FLOATS + COMPLEXES,
        )
        case(
            f"comparison.{name}",
            fixed(1, 1, 100),
            fixed(1, 1, 100),
            *options,
            reference=reference,
            result="bool",
        )
        case(
            f"comparison.{name}",
            fixed(1, 100),
            fixed(2, 101),
            *options,
            reference=reference,
            result="bool",
            dtypes=INTEGERS,
        )
for first, second in (((), ()), ((2, 3), (3,)), ((0,), (1,))):
    case(
        "comparison.isclose",
        real(*first, low=0, high=1),
        real(*second, low=0, high=1),
        reference=np.isclose,
        result="bool",
    )
    case(
        "comparison.allclose",
        real(*first, low=0, high=1),
        real(*second, low=0, high=1),
        reference=np.allclose,
        result="bool",
    )
case(
    "comparison.isclose",
    fixed(-(2**63), 2**62),
    fixed(2**63 - 1, 2**62 + 1),
    0.0,
    check=exact(False, False),
    dtypes=("int64",),
)

case("comparison.array_equal", real(2, 3), real(2, 3), reference=np.array_equal, result="bool")
case("comparison.array_equal", real(2, 3), real(3), check=exact(False, dtype="bool"))
case("comparison.array_equal", real(0), real(0), check=exact(True))
case("comparison.array_equal", fixed(1, 0, 1), fixed(1, 0, 1), check=exact(True))
case("comparison.array_equal", fixed(1, 0), fixed(1, 1), check=exact(False))
for equal_nan in (True, False):
    case(
        "comparison.array_equal",
        fixed(math.nan, 1.0),
        fixed(math.nan, 1.0),
        check=exact(equal_nan),
        equal_nan=equal_nan,
        dtypes=FLOATS + COMPLEXES,
    )

for shape in ((), (0,), (7,), (2, 3)):
    for invert in (False, True):
        case(
            "comparison.isin",
            real(*shape, low=0, high=4),
            fixed(0, 2),
            reference=np.isin,
            result="bool",
            invert=invert,
        )
        case(
            "comparison.isin",
            real(*shape, low=0, high=4),
            real(0),
            reference=np.isin,
            result="bool",
            invert=invert,
        )
case(
    "comparison.isin",
    fixed(2**53 + 1, 3),
    fixed(2**53, 3),
    reference=np.isin,
    result="bool",
    dtypes=("int64",),
)
case(
    "comparison.isin",
    fixed(0, 1, 2),
    [[0, 1], [1, 1]],
    reference=np.isin,
    result="bool",
    dtypes=("int8", "int64", *FLOATS),
)
