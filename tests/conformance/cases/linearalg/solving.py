"""Rows for `ember_ml.ops.linearalg.solving`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.matrices import adjoint, close, numbers, regular
from tests.conformance.table import COMPLEXES, FLOATS, INTEGERS, case, integers, real

FAMILY = "linearalg.solving"
NO_BOOL = (*INTEGERS, *FLOATS, *COMPLEXES)
EMPTY = ((0, 0), (0, 3, 3), (2, 0, 0))

for shape in ((1, 1), (3, 3), (2, 4, 4), (2, 1, 3, 3)):
    case(f"{FAMILY}.inv", regular(*shape), reference=np.linalg.inv, rtol=5.0)
for shape in EMPTY:
    case(f"{FAMILY}.inv", real(*shape), reference=np.linalg.inv)
case(f"{FAMILY}.inv", regular(3, 3, transposed=True), reference=np.linalg.inv, rtol=5.0)
needs_pivots = real(3, 3, transform=lambda x: np.array([[0, 2, 1], [1, 0, 0], [3, 0, 1]]))
case(f"{FAMILY}.inv", needs_pivots, reference=np.linalg.inv, rtol=5.0, dtypes=NO_BOOL)
case(
    f"{FAMILY}.inv",
    regular(20, 20),
    reference=np.linalg.inv,
    dtypes=("float32", "float64", "complex64"),
    rtol=300.0,
)

PAIRS = (
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((1, 1), (1,)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 2)),
    ((3, 3), (2, 3, 2)),
    ((2, 3, 3), (2, 3, 4)),
    ((2, 1, 3, 3), (4, 3, 1)),
    ((3, 2, 2), (2, 2)),  # y is one matrix, not two vectors
)
EMPTY_PAIRS = (
    ((0, 0), (0,)),
    ((0, 0), (0, 2)),
    ((3, 3), (3, 0)),
    ((0, 3, 3), (3, 2)),
    ((2, 0, 0), (2, 0, 1)),
)
for first, second in PAIRS:
    case(f"{FAMILY}.solve", regular(*first), real(*second), reference=np.linalg.solve, rtol=5.0)
for first, second in EMPTY_PAIRS:
    case(f"{FAMILY}.solve", regular(*first), real(*second), reference=np.linalg.solve)
case(f"{FAMILY}.solve", needs_pivots, real(3), reference=np.linalg.solve, rtol=5.0, dtypes=NO_BOOL)


def triangular(x: Any, y: Any, upper: bool = False, unit_diagonal: bool = False) -> Any:
    triangle = np.triu(x) if upper else np.tril(x)
    if unit_diagonal:
        triangle = np.where(np.eye(x.shape[-1]), 1, triangle)
    return np.linalg.solve(triangle, y)


for first, second in PAIRS:
    for options in ({}, {"upper": True}):
        case(
            f"{FAMILY}.solve_triangular",
            regular(*first),
            real(*second),
            reference=triangular,
            rtol=5.0,
            **options,
        )
for options in ({"unit_diagonal": True}, {"upper": True, "unit_diagonal": True}):
    case(
        f"{FAMILY}.solve_triangular",
        regular(3, 3),
        real(3, 2),
        reference=triangular,
        rtol=20.0,
        **options,
    )
for first, second in EMPTY_PAIRS:
    case(f"{FAMILY}.solve_triangular", regular(*first), real(*second), reference=triangular)


def from_factor(x: Any, y: Any, upper: bool = False) -> Any:
    triangle = np.triu(x) if upper else np.tril(x)
    return np.linalg.solve(
        adjoint(triangle) @ triangle if upper else triangle @ adjoint(triangle), y
    )


for upper in (False, True):
    for first, second in (((3, 3), (3,)), ((2, 3, 3), (3, 2)), ((1, 1), (1, 1))):
        case(
            f"{FAMILY}.cholesky_solve",
            regular(*first),
            real(*second),
            reference=from_factor,
            upper=upper,
            rtol=20.0,
        )
case(f"{FAMILY}.cholesky_solve", real(0, 0), real(0, 2), reference=from_factor)

for shape in ((3, 3), (5, 2), (2, 5), (2, 4, 3), (1, 1)):
    case(
        f"{FAMILY}.pinv",
        regular(*shape) if shape[-1] == shape[-2] else real(*shape),
        reference=np.linalg.pinv,
        rtol=20.0,
        dtypes=NO_BOOL,
    )
for shape in ((0, 0), (0, 3), (3, 0), (2, 3, 0), (0, 2, 3)):
    case(f"{FAMILY}.pinv", real(*shape), reference=np.linalg.pinv)
rank_one = real(4, 3, transform=lambda x: np.outer(np.arange(1, 5), [1, 2, 1]))
case(
    f"{FAMILY}.pinv",
    rank_one,
    reference=np.linalg.pinv,
    rtol=5.0,
    dtypes=("int32", *FLOATS, *COMPLEXES),
)
graded = real(2, 3, 3, transform=lambda x: np.broadcast_to(np.diag([4, 1, 2]), x.shape))


def pinv(x: Any, rtol: Any) -> Any:
    return np.linalg.pinv(x, rtol=rtol)


case(f"{FAMILY}.pinv", graded, 0.3, reference=pinv)
case(
    f"{FAMILY}.pinv",
    graded,
    integers(2, dtype="float32", low=1, high=1, transform=lambda x: np.array([0.3, 0.1])),
    reference=pinv,
)


def is_least_squares(result: Any, x: Any, y: Any, rtol: Any = None) -> None:
    columns = y[:, None] if y.ndim == 1 else y
    want = np.linalg.pinv(x, rtol=rtol) @ columns
    rest = np.sum(np.abs(columns - x @ want) ** 2, axis=-2)
    if y.ndim == 1:
        want, rest = want[..., 0], rest[..., 0]
    values = np.linalg.svdvals(x)
    cutoff = 1e-2 if rtol is None else rtol
    dtype = result.solution.dtype
    assert result.solution.shape == want.shape
    assert result.residuals.shape == rest.shape
    assert result.rank.dtype == "int64"
    close(numbers(result.solution), want, dtype, 30.0)
    close(numbers(result.residuals), rest, dtype, 30.0)
    close(numbers(result.singular_values), values, dtype)
    np.testing.assert_array_equal(result.rank.numpy(), (values > cutoff * values[..., :1]).sum(-1))


for first, second in (
    ((5, 3), (5,)),
    ((5, 3), (5, 2)),
    ((2, 5, 3), (5, 2)),
    ((3, 5), (3,)),
    ((1, 1), (1,)),
    ((4, 3, 3), (3,)),
):
    sample = regular(*first) if first[-1] == first[-2] else real(*first)
    case(
        f"{FAMILY}.lstsq",
        sample,
        real(*second),
        check=is_least_squares,
        dtypes=("int32", "float16", "float32", "float64", *COMPLEXES),
    )
case(
    f"{FAMILY}.lstsq",
    rank_one,
    real(4, 2),
    check=is_least_squares,
    dtypes=("int32", "float32", "float64", *COMPLEXES),
)
case(
    f"{FAMILY}.lstsq",
    real(3, 3, transform=lambda x: np.diag([4, 1, 2])),
    real(3),
    0.3,
    check=is_least_squares,
    dtypes=("float32", "float64"),
)
