"""Rows for `ember_ml.ops.creation`; rarer dtypes are tried in `tests/unit/test_dtypes.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance.cases.reduction import WIDE, check_uint8, summed
from tests.conformance.table import case, real

COMMON = ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "complex64")


def made(
    key: str, *args: Any, reference: Callable[..., Any], result: str = "float32", **kwargs: Any
) -> None:
    """Add a row for a tensor created from plain arguments."""
    case(key, *args, reference=reference, dtypes=("float32",), result=result, **kwargs)


for key, function in (("creation.zeros", np.zeros), ("creation.ones", np.ones)):
    for shape in ((), 3, (0,), (2, 3), (2, 0, 3), [2, 2]):
        made(key, shape, reference=function)
    for dtype in COMMON:
        made(key, (2, 3), reference=function, result=dtype, dtype=dtype)
    made(key, reference=function, shape=(2,), dtype="int16", result="int16")


def check_shape(got: Any, shape: Any, dtype: str = "float32") -> None:
    """Check shape and dtype only."""
    assert got.shape == ((shape,) if isinstance(shape, int) else tuple(shape))
    assert got.dtype == dtype


for shape in ((), 3, (2, 0), (2, 3)):
    case("creation.empty", shape, check=check_shape, dtypes=("float32",))
    case("creation.empty", shape, check=check_shape, dtype="int64", dtypes=("float32",))

case("creation.filled", real(), (2, 3), reference=lambda x, shape: np.full(shape, x))
case("creation.filled", real(), 4, reference=lambda x, shape: np.full(shape, x))
case("creation.filled", real(), (), reference=lambda x, shape: np.full(shape, x))
case("creation.filled", real(), (2, 0), reference=lambda x, shape: np.full(shape, x))
case("creation.filled", real(3), (2, 3), reference=lambda x, shape: np.full(shape, x))


def eye(n_rows: int, n_cols: int | None = None, **kwargs: Any) -> Any:
    """Compute with NumPy."""
    return np.eye(n_rows, n_cols, **kwargs)


def tri(n_rows: int, n_cols: int | None = None, **kwargs: Any) -> Any:
    """Compute with NumPy."""
    return np.tri(n_rows, n_cols, **kwargs)


for key, function in (("creation.eye", eye), ("creation.tri", tri)):
    for args in ((0,), (1,), (3,), (3, 4), (4, 2), (0, 3), (3, 0)):
        made(key, *args, reference=function)
    for k in (-(2**40), -5, -3, -1, 1, 4, 5, 2**40):
        made(key, 3, 4, reference=function, k=k)
    for dtype in COMMON:
        made(key, 3, reference=function, result=dtype, dtype=dtype)

for args in (
    (5,),
    (0,),
    (-3,),
    (2, 7),
    (7, 2),
    (7, 2, -2),
    (2, 7, -1),
    (0, 10, 3),
    (0, 10, 4),
    (2**60, 2**60 + 3),
    (-(2**63), -(2**63) + 2),
):
    made("creation.arange", *args, reference=np.arange, result="int64")
for args in (
    (5.0,),
    (0, 1, 0.1),
    (1, 0, -0.25),
    (0.5, 3),
    (0, 0.3, 0.1),
    (1, 2, 5.0),
    (2.0, 1.0),
    (1.0, 1.0),
    (0, 7, 0.37),
):
    made("creation.arange", *args, reference=np.arange)
made("creation.arange", 3, reference=np.arange, stop=9, step=2, result="int64")
made(
    "creation.arange",
    1,
    5,
    0.5,
    reference=lambda *args, dtype: np.arange(*args).astype(dtype),
    dtype="int64",
    result="int64",
)
made(
    "creation.arange",
    2**24 - 1,
    2**24 + 4,
    reference=lambda *args, dtype: np.arange(*args).astype(dtype),
    dtype="float32",
)
for dtype in COMMON[1:]:
    made("creation.arange", 1, 6, 2, reference=np.arange, dtype=dtype, result=dtype)


for args in (
    (0, 1),
    (0.1, 0.7, 1001),
    (1, -1, 7),
    (3, 3, 4),
    (0, 1, 0),
    (0, 1, 1),
    (2**24, 2**24 + 8, 9),
    (-1e30, 1e30, 5),
):
    for endpoint in (True, False):
        made("creation.linspace", *args, reference=np.linspace, endpoint=endpoint, rtol=0.01)
made("creation.linspace", 0, 10, 5, reference=np.linspace, dtype="int32", result="int32")
made("creation.linspace", -1, 0, 4, reference=np.linspace, dtype="int64", result="int64")
made("creation.linspace", 0, 1, 6, reference=np.linspace, dtype="float16", result="float16")
made("creation.linspace", 1 + 2j, 3, 4, reference=np.linspace, result="complex64")
made("creation.linspace", 0, 2, 5, reference=np.linspace, dtype="complex64", result="complex64")
case(
    "creation.linspace",
    0.1,
    0.7,
    50,
    check=lambda got, *args: np.testing.assert_equal(got.numpy()[[0, -1]], np.float32([0.1, 0.7])),
    dtypes=("float32",),
)

for args in ((0, 3, 4), (-2, 2), (1, 1, 3), (0, 1, 0)):
    made("creation.logspace", *args, reference=np.logspace)
    made("creation.logspace", *args, reference=np.logspace, base=2.0, endpoint=False)
for args in ((1, 1000, 4), (-1, -1000, 7), (0.01, 100), (8, 1, 4), (2, 2, 3), (1, 8, 1), (1, 8, 0)):
    made("creation.geomspace", *args, reference=np.geomspace)
    made("creation.geomspace", *args, reference=np.geomspace, endpoint=False)
case(
    "creation.geomspace",
    0.1,
    0.7,
    50,
    check=lambda got, *args: np.testing.assert_equal(got.numpy()[-1], np.float32(0.7)),
    dtypes=("float32",),
)

for key, function in (("creation.zeros_like", np.zeros_like), ("creation.ones_like", np.ones_like)):
    for shape in ((), (0,), (2, 3)):
        case(key, real(*shape), reference=function)
    case(key, real(2, 3, transposed=True), reference=function)
    case(key, real(2), reference=function, dtype="int32", result="int32")
    case(key, real(2), reference=function, dtype="complex64", result="complex64")
case(
    "creation.empty_like",
    real(2, 3),
    check=lambda got, x: check_shape(got, x.shape, str(got.dtype)),
)
case("creation.full_like", real(2, 3), 3, reference=np.full_like)
case("creation.full_like", real(2, 0), 1, reference=np.full_like)
case(
    "creation.full_like",
    real(3),
    1.5,
    reference=np.full_like,
    dtype="float32",
    result="float32",
    dtypes=("bool", "int8", "float16", "float32", "float64"),
)
case("creation.full_like", real(3), True, reference=np.full_like, dtype="bool", result="bool")

made("creation.eye", 3, 4, reference=lambda *args, k: np.zeros((3, 4)), k=2**70)
made("creation.tri", 3, 4, reference=lambda *args, k: np.ones((3, 4)), k=2**70)

for key, function in (("creation.tril", np.tril), ("creation.triu", np.triu)):
    for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 3), (0, 3), (2, 3, 0), (1, 1)):
        case(key, real(*shape), reference=function)
    for k in (-(2**40), -4, -3, -1, 1, 4, 2**40):
        case(key, real(3, 4), reference=function, k=k)
    case(key, real(3, 4, transposed=True), 1, reference=function)
    case(key, real(3, 3, special=True), reference=function, dtypes=("float32", "float64"))

for indexing in ("xy", "ij"):
    for shapes in (((3,),), ((2,), (3,)), ((2,), (3,), (4,)), ((), (2,)), ((0,), (2,))):
        case(
            "creation.coordinate_matrices",
            [real(*shape) for shape in shapes],
            reference=lambda parts, indexing: np.meshgrid(*parts, indexing=indexing),
            indexing=indexing,
        )

NUMERIC = tuple(name for name in WIDE if name != "bool")
for increasing in (False, True):
    for args in ((), (5,), (2,), (1,), (0,)):
        case(
            "creation.vander",
            real(4, low=-2, high=2),
            *args,
            reference=np.vander,
            increasing=increasing,
            dtypes=NUMERIC,
            result=summed,
        )
case("creation.vander", real(0), 3, reference=np.vander, dtypes=NUMERIC, result=summed)
case("creation.vander", real(3), check=check_uint8(np.vander), dtypes=("uint8",))
