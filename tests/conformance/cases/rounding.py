"""Rows for `ember_ml.ops.rounding`."""

from __future__ import annotations

import math

import numpy as np

from tests.conformance.fixed import exact, fixed, signed, top
from tests.conformance.table import (
    COMPLEXES,
    FLOATS,
    INTEGERS,
    binary_cases,
    case,
    real,
    unary_cases,
)

HALVES = (0.5, -0.5, 1.5, 2.5, -1.5, -0.25, 0.0, -0.0, math.inf, -math.inf, math.nan)
for name, reference in (
    ("ceil", np.ceil),
    ("floor", np.floor),
    ("trunc", np.trunc),
    ("round", np.round),
):
    unary_cases(f"rounding.{name}", reference)
    case(f"rounding.{name}", fixed(*HALVES), check=signed(reference), dtypes=FLOATS)
    case(
        f"rounding.{name}",
        fixed(2**53 + 1, -(2**53) - 1),
        check=exact(2**53 + 1, -(2**53) - 1),
        dtypes=("int64",),
    )
case("rounding.round", fixed(0.5 + 1.5j, -2.5 - 0.5j), reference=np.round, dtypes=COMPLEXES)
case(
    "rounding.round",
    real(2, 3),
    reference=np.round,
    decimals=2,
    dtypes=("float32", "float64", "complex64"),
)
case(
    "rounding.round", real(7, low=-99, high=99), reference=np.round, decimals=-1, dtypes=FLOATS[2:]
)
case(
    "rounding.round", fixed(15, 25, 34, 0), check=exact(20, 20, 30, 0), decimals=-1, dtypes=INTEGERS
)
case(
    "rounding.round",
    fixed(-15, -25, -34),
    check=exact(-20, -20, -30),
    decimals=-1,
    dtypes=INTEGERS[:4],
)

NUMBERS = (math.nan, math.inf, -math.inf, 1.0, -1.0)
for name, reference in (
    ("maximum", np.maximum),
    ("minimum", np.minimum),
    ("fmax", np.fmax),
    ("fmin", np.fmin),
):
    key = f"rounding.{name}"
    binary_cases(key, reference)
    case(key, fixed(*NUMBERS, column=True), fixed(*NUMBERS), reference=reference, dtypes=FLOATS)
    case(key, real(5), 1, reference=reference, dtypes=INTEGERS + FLOATS)
    case(key, 0.5, real(5), reference=reference, dtypes=FLOATS)
    case(
        key,
        fixed(2**53, -(2**53)),
        fixed(2**53 + 1, -(2**53) - 1),
        reference=reference,
        dtypes=("int64",),
    )
    case(key, top(1, 0), top(0, 1), reference=reference, dtypes=INTEGERS)


def clipped(x, min=None, max=None):  # noqa: A002
    out = x if min is None else np.maximum(x, min)
    return out if max is None else np.minimum(out, max)


for shape in ((), (0,), (7,), (2, 3)):
    case("rounding.clip", real(*shape), reference=clipped, min=1, max=2)
case("rounding.clip", real(3, 4, transposed=True), reference=clipped, min=1)
case("rounding.clip", real(5), reference=clipped, max=2)
case("rounding.clip", real(5), reference=clipped)
bounds = ([0, 1, 2], [[3], [2]])
case("rounding.clip", real(2, 1), *bounds, reference=clipped, dtypes=INTEGERS[:7] + FLOATS)
case("rounding.clip", real(5, special=True), reference=clipped, min=-1.5, max=0.5, dtypes=FLOATS)
case("rounding.clip", real(5), reference=clipped, min=math.nan, dtypes=FLOATS)
case("rounding.clip", fixed(1, 2, 3), min=1.5, max=2.5, check=exact(2, 2, 2), dtypes=INTEGERS)
case(
    "rounding.clip",
    fixed(1, 2, 3),
    min=-math.inf,
    max=math.inf,
    check=exact(1, 2, 3),
    dtypes=INTEGERS,
)
case(
    "rounding.clip", fixed(1, 100), max=[200, 7], check=exact(1, 7, dtype="int8"), dtypes=("int8",)
)
