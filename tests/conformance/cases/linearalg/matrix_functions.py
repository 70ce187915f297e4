"""Rows for `ember_ml.ops.linearalg.matrix_functions`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from tests.conformance.matrices import adjoint, close, hermitian, numbers, regular
from tests.conformance.table import COMPLEXES, FLOATS, INTEGERS, case, integers, real

FAMILY = "linearalg.matrix_functions"
NO_BOOL = (*INTEGERS, *FLOATS, *COMPLEXES)
EXACT = (*INTEGERS, "float32", "float64", *COMPLEXES)
EMPTY = ((0, 0), (0, 3, 3), (2, 0, 0))


def slogdet(x: Any) -> Any:
    return tuple(np.linalg.slogdet(x))


for shape in ((1, 1), (2, 2), (3, 3), (2, 4, 4), (2, 1, 3, 3), (5, 5)):
    case(f"{FAMILY}.det", regular(*shape), reference=np.linalg.det, rtol=5.0)
    case(f"{FAMILY}.det", real(*shape), reference=np.linalg.det, dtypes=EXACT, rtol=30.0)
    case(f"{FAMILY}.slogdet", regular(*shape), reference=slogdet, result=("same", "real"), rtol=5.0)
for shape in EMPTY:
    case(f"{FAMILY}.det", real(*shape), reference=np.linalg.det)
    case(f"{FAMILY}.slogdet", real(*shape), reference=slogdet, result=("same", "real"))
swapped = real(3, 3, transform=lambda x: np.array([[0, 2, 0], [1, 0, 0], [0, 0, 3]]))
singular = real(3, 3, transform=lambda x: np.array([[1, 0, 2], [0, 0, 0], [3, 0, 1]]))
huge = real(30, 30, transform=lambda x: 50 * np.eye(30))
case(f"{FAMILY}.det", swapped, reference=np.linalg.det, dtypes=NO_BOOL)
case(f"{FAMILY}.det", singular, reference=np.linalg.det, dtypes=NO_BOOL)
case(f"{FAMILY}.slogdet", swapped, reference=slogdet, result=("same", "real"), dtypes=NO_BOOL)
case(f"{FAMILY}.slogdet", singular, reference=slogdet, result=("same", "real"), dtypes=NO_BOOL)
case(
    f"{FAMILY}.slogdet",
    huge,
    reference=slogdet,
    result=("same", "real"),
    dtypes=("float32", "complex64"),
    rtol=3.0,
)


def matrix_power(x: Any, n: int) -> Any:
    return np.linalg.matrix_power(x, n)


for n in (-3, -1, 0, 1, 2, 3, 7):
    sample = regular(3, 3) if n < 0 else real(3, 3, low=-1, high=1)
    case(f"{FAMILY}.matrix_power", sample, n, reference=matrix_power, rtol=5.0)
    case(f"{FAMILY}.matrix_power", real(*EMPTY[0]), n, reference=matrix_power)
for n in (0, 2, 5):
    case(
        f"{FAMILY}.matrix_power", real(2, 3, 3, low=-1, high=1), n, reference=matrix_power, rtol=5.0
    )
case(f"{FAMILY}.matrix_power", real(0, 3, 3), 2, reference=matrix_power)
case(
    f"{FAMILY}.matrix_power",
    real(3, 3, low=15, high=16),
    4,
    reference=matrix_power,
    dtypes=("int8", "float32"),
    rtol=3.0,
)

for shape in ((1, 1), (3, 3), (2, 4, 4)):
    case(f"{FAMILY}.expm", real(*shape, low=-1, high=1), reference=scipy.linalg.expm, rtol=10.0)
for shape in EMPTY:
    case(f"{FAMILY}.expm", real(*shape), reference=lambda x: x)
NEGATIVE = ("float32", "float64", *COMPLEXES)
rotations = real(2, 2, 2, transform=lambda x: np.array([[[0, -3], [3, 0]], [[0, -60], [60, 0]]]))
nilpotent = real(3, 3, transform=lambda x: np.array([[0, 50, 0], [0, 0, 40], [0, 0, 0]]))
mixed = real(3, 2, 2, transform=lambda x: np.array([0.1, 7.0, -40.0])[:, None, None] * np.eye(2))
case(f"{FAMILY}.expm", rotations, reference=scipy.linalg.expm, dtypes=NEGATIVE, rtol=30.0)
case(f"{FAMILY}.expm", nilpotent, reference=scipy.linalg.expm, dtypes=NEGATIVE, rtol=10.0)
case(f"{FAMILY}.expm", mixed, reference=scipy.linalg.expm, dtypes=NEGATIVE, rtol=10.0)
case(f"{FAMILY}.expm", real(3, 3, transform=np.zeros_like), reference=scipy.linalg.expm)
case(
    f"{FAMILY}.expm",
    real(3, 3, low=-1, high=1, transposed=True),
    reference=scipy.linalg.expm,
    rtol=10.0,
)


def matrix_rank(x: Any, rtol: Any = None) -> Any:
    return np.asarray(np.linalg.matrix_rank(x, rtol=1e-2 if rtol is None else rtol), np.int64)


def rank(*inputs: Any, **options: Any) -> None:
    case(f"{FAMILY}.matrix_rank", *inputs, reference=matrix_rank, result="int64", **options)


for shape in ((3, 3), (2, 3, 3), (1, 1)):
    rank(regular(*shape))
for shape in ((0, 0), (0, 3), (3, 0), (2, 0, 3), (0, 2, 2)):
    rank(real(*shape))
products = real(
    2, 4, 3, transform=lambda x: np.stack([np.outer([1, 2, 3, 4], [1, 1, 2]), 0 * x[0]])
)
graded = real(2, 3, 3, transform=lambda x: np.broadcast_to(np.diag([4, 1, 2]), x.shape))
rank(products, dtypes=NO_BOOL)
rank(graded, 0.3)
rank(graded, integers(2, dtype="float32", transform=lambda x: np.array([0.3, 0.1])))


def is_basis_of_range(result: Any, x: Any) -> None:
    basis = numbers(result)
    close(adjoint(basis) @ basis, np.eye(basis.shape[1]), result.dtype)
    close(basis @ (adjoint(basis) @ x), x, result.dtype)
    assert basis.shape[1] == np.linalg.matrix_rank(x, rtol=1e-2)


def is_basis_of_null_space(result: Any, x: Any) -> None:
    basis = numbers(result)
    assert basis.shape == (x.shape[1], x.shape[1] - np.linalg.matrix_rank(x, rtol=1e-2))
    close(adjoint(basis) @ basis, np.eye(basis.shape[1]), result.dtype)
    close(x @ basis, np.zeros((x.shape[0], basis.shape[1])), result.dtype)


low_rank = real(4, 3, transform=lambda x: np.outer([1, 2, 3, 4], [1, 1, 2]))
for sample in (real(4, 3), low_rank, hermitian(3, 3), real(2, 4)):
    case(f"{FAMILY}.orth", sample, check=is_basis_of_range, dtypes=EXACT)
    case(f"{FAMILY}.null_space", sample, check=is_basis_of_null_space, dtypes=EXACT)
