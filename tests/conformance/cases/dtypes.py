"""Rows for `ember_ml.ops.dtypes`."""

from __future__ import annotations

from typing import Any

from tests.conformance.table import ALL, COMPLEXES, FLOATS, case, positive, real

REAL = tuple(name for name in ALL if name not in COMPLEXES)


def astype(x: Any, dtype: str, **_: Any) -> Any:
    """Compute with NumPy."""
    return x.astype(dtype)


for target in ("bool", "int8", "int32", "int64", "float16", "float32", "complex64"):
    case("dtypes.astype", real(2, 3), target, reference=astype, dtypes=REAL, result=target)
case("dtypes.astype", positive(2, 3), "uint8", reference=astype, dtypes=REAL, result="uint8")
case("dtypes.astype", real(4), "complex64", reference=astype, result="complex64")
case(
    "dtypes.astype",
    real(3, 4, transposed=True),
    "float32",
    reference=astype,
    dtypes=REAL,
    result="float32",
    copy=False,
)
case(
    "dtypes.astype",
    real(5, special=True),
    "float32",
    reference=astype,
    dtypes=FLOATS,
    result="float32",
)
case("dtypes.astype", real(5, special=True), "bool", reference=astype, dtypes=FLOATS, result="bool")
case(
    "dtypes.astype",
    real(0, 2),
    "int16",
    reference=astype,
    dtypes=REAL,
    result="int16",
    device="cpu",
)
case("dtypes.astype", real(), "float32", reference=astype, dtypes=REAL, result="float32")
