"""Rows for `ember_ml.ops.linearalg.norms`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.conformance.matrices import regular
from tests.conformance.table import COMPLEXES, FLOATS, INTEGERS, Sample, case, positive, real

FAMILY = "linearalg.norms"
NO_BOOL = (*INTEGERS, *FLOATS, *COMPLEXES)


def vector(*inputs: Any, **options: Any) -> None:
    options = {"reference": np.linalg.vector_norm, "result": "real", "rtol": 3.0, **options}
    case(f"{FAMILY}.vector_norm", *inputs, **options)


for order in (2, 1, 0, 3, 0.5, 2.5, -1, -2, math.inf, -math.inf):
    sample = positive(2, 3, 4, low=1) if order < 1 else real(2, 3, 4)
    for axis in (None, 0, -1, (0, 2)):
        vector(sample, ord=order, axis=axis, dtypes=NO_BOOL)
    vector(sample, ord=order, axis=1, keepdims=True, dtypes=NO_BOOL)
    vector(sample, ord=order, keepdims=True, dtypes=NO_BOOL)
for shape in ((), (1,), (0,), (0, 3), (3, 0)):
    vector(real(*shape))
    vector(real(*shape), ord=1)
vector(real(3, 0), axis=0)
vector(real(3, 0), axis=1, ord=1)
vector(real(4, 3), axis=())
vector(real(3, 4, transposed=True), axis=0)
vector(real(7, special=True), dtypes=FLOATS)
vector(real(7, special=True), dtypes=FLOATS, ord=math.inf)
vector(real(2, low=250, high=300), dtypes=("float16",))  # the squares overflow
vector(real(3, transform=np.zeros_like))


def matrix(*inputs: Any, **options: Any) -> None:
    options = {"reference": np.linalg.matrix_norm, "result": "real", "rtol": 5.0, **options}
    case(f"{FAMILY}.matrix_norm", *inputs, **options)


ORDERS = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)
for order in ORDERS:
    for shape in ((3, 3), (2, 4), (2, 4, 3), (1, 1)):
        matrix(real(*shape), ord=order)
    matrix(real(2, 4, 3), ord=order, keepdims=True)
    matrix(real(0, 2, 3), ord=order)
matrix(real(3, 2), ord=None)
matrix(real(0, 3))
matrix(real(2, 0, 3), ord="nuc")


def norm(*inputs: Any, **options: Any) -> None:
    options = {"reference": np.linalg.norm, "result": "real", "rtol": 5.0, **options}
    case(f"{FAMILY}.norm", *inputs, **options)


for shape in ((), (4,), (3, 4), (2, 3, 4), (0,), (1, 1)):
    norm(real(*shape))
    norm(real(*shape), keepdims=True)
for order in (1, 2, 3, math.inf, -math.inf, 0):
    norm(real(5), ord=order)
    norm(real(2, 3, 4), ord=order, axis=1)
    norm(real(2, 3, 4), ord=order, axis=-1, keepdims=True)
for order in (None, *ORDERS):
    norm(real(3, 4), ord=order)
    for axis in ((0, 1), (-1, 0), (2, 1)):
        norm(real(2, 3, 4), ord=order, axis=axis)
        norm(real(2, 3, 4), ord=order, axis=axis, keepdims=True)
norm(real(2, 3, 4), axis=(1,))


def cond(*inputs: Any, **options: Any) -> None:
    options = {"reference": np.linalg.cond, "result": "real", "rtol": 20.0, **options}
    case(f"{FAMILY}.cond", *inputs, **options)


def fixed_matrix(*rows: list[float]) -> Sample:
    values = np.array(rows)
    return real(*values.shape, transform=lambda x: values)


WIDE = ("int32", "float16", "float32", "float64", *COMPLEXES)
for order in (None, 2, -2, 1, -1, math.inf, -math.inf, "fro", "nuc"):
    cond(regular(3, 3), p=order, dtypes=WIDE)
    cond(regular(2, 4, 4), p=order, dtypes=WIDE)
    if order not in (-2, "nuc"):
        cond(fixed_matrix([0, 0], [0, 2]), p=order, dtypes=WIDE)
cond(real(4, 2), dtypes=("float32", "float64", *COMPLEXES))
cond(fixed_matrix([1e-3, 0, 0], [0, 1e-3, 0], [0, 0, 1e-3]), p=1, dtypes=("float32", "float64"))
cond(real(20, 20, transform=lambda x: 1e-4 * np.eye(20)), p=1, dtypes=("float32", "float64"))
