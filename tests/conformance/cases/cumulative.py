"""Rows for `ember_ml.ops.cumulative`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate

from tests.conformance.cases.reduction import WIDE, check_uint8, summed
from tests.conformance.table import ALL, FLOATS, axis_cases, case, real, takes

NUMERIC = tuple(name for name in WIDE if name != "bool")


def running_cases(key: str, reference: Callable[..., Any], **options: Any) -> None:
    """Rows for running values: each axis, flat, empty, 0-d, NaN."""
    axis_cases(key, reference, **options)
    case(key, real(2, 3), reference=reference, **options)
    case(key, real(), reference=reference, **options)
    case(key, real(0), reference=reference, axis=0, **options)
    case(key, real(2, 0, 3), reference=reference, axis=1, **options)
    case(key, real(2, 0, 3), reference=reference, axis=2, **options)
    floats = tuple(name for name in takes(key) if name in FLOATS)
    case(
        key, real(4, 3, special=True), reference=reference, axis=1, **{**options, "dtypes": floats}
    )


for key, reference in (("cumulative.cumsum", np.cumsum), ("cumulative.cumprod", np.cumprod)):
    running_cases(key, reference, dtypes=WIDE, result=summed)
    case(key, real(3, 4), check=check_uint8(reference), dtypes=("uint8",), axis=1)
    case(
        key,
        real(6, low=-9, high=9),
        reference=reference,
        dtypes=("int8",),
        dtype="int8",
        axis=0,
        result="int8",
    )
    case(
        key,
        real(6),
        reference=reference,
        dtypes=("int32", "bool"),
        dtype="float32",
        axis=0,
        result="float32",
    )
case(
    "cumulative.cumsum",
    real(4000, 2, low=1, high=1.01),
    reference=np.cumsum,
    axis=0,
    dtypes=FLOATS[:3],
)
case(
    "cumulative.cumsum",
    real(9, transform=lambda x: x + 2**58),
    reference=np.cumsum,
    axis=0,
    dtypes=("int64", "uint64"),
)
case(
    "cumulative.cumprod",
    real(500, 2, low=1, high=1.02),
    reference=np.cumprod,
    axis=0,
    dtypes=FLOATS[:2],
)

for key, ufunc in (("cumulative.cummax", np.maximum), ("cumulative.cummin", np.minimum)):

    def running(x: Any, axis: int | None = None, ufunc: Any = ufunc) -> Any:
        return ufunc.accumulate(x.reshape(-1) if axis is None else x, axis or 0)

    running_cases(key, running)
    case(
        key,
        real(20, transform=lambda x: x + 2**60),
        reference=running,
        axis=0,
        dtypes=("int64", "uint64"),
    )


def logcumsumexp(x: Any, axis: int | None = None) -> Any:
    """Compute the plain formula, shifted by the maximum."""
    peak = np.max(x, initial=-500.0)
    return np.log(np.cumsum(np.exp(x - peak), axis=axis)) + peak


def logaddexp(x: Any, axis: int | None = None) -> Any:
    """Accumulate pair by pair, for NaN and infinities."""
    return np.logaddexp.accumulate(x, axis)


KEY = "cumulative.logcumsumexp"
axis_cases(KEY, logcumsumexp)
case(KEY, real(2, 3), reference=logcumsumexp)
case(KEY, real(2, 0, 3), reference=logcumsumexp, axis=1)
case(KEY, real(4, 3, special=True), reference=logaddexp, axis=1, dtypes=FLOATS)
case(KEY, real(6, low=900, high=1000), reference=logcumsumexp, axis=0, dtypes=FLOATS)
case(KEY, real(6, transform=lambda x: x * 0 - np.inf), reference=logaddexp, axis=0, dtypes=FLOATS)

for key, function in (
    ("cumulative.cumulative_sum", np.cumulative_sum),
    ("cumulative.cumulative_prod", np.cumulative_prod),
):
    axis_cases(key, function, dtypes=NUMERIC, result=summed)
    case(key, real(5), reference=function, dtypes=NUMERIC, result=summed)
    case(key, real(5), reference=function, include_initial=True, dtypes=NUMERIC, result=summed)
    for axis in (0, 1, -1):
        case(
            key,
            real(2, 3),
            reference=function,
            axis=axis,
            include_initial=True,
            dtypes=NUMERIC,
            result=summed,
        )
    case(
        key,
        real(2, 0),
        reference=function,
        axis=1,
        include_initial=True,
        dtypes=NUMERIC,
        result=summed,
    )
    case(key, real(4), reference=function, dtype="float32", dtypes=("int32",), result="float32")
    case(key, real(4), check=check_uint8(function), dtypes=("uint8",), include_initial=True)

axis_cases("cumulative.diff", np.diff)
for n in (0, 2, 3, 5):
    case("cumulative.diff", real(2, 4), reference=np.diff, n=n)
case("cumulative.diff", real(2, 0), reference=np.diff)
case("cumulative.diff", real(3, 2), reference=np.diff, axis=0, n=2, dtypes=("int64", "float32"))


def extended(x: Any, prepend: Any = None, append: Any = None, axis: int = -1) -> Any:
    """Compute differences after joining."""
    parts = [np.asarray(part) for part in (prepend, x, append) if part is not None]
    return np.diff(np.concatenate(parts, axis=axis), axis=axis)


case("cumulative.diff", real(2, 3), reference=extended, prepend=[[1.0], [2.0]], dtypes=("float32",))
case(
    "cumulative.diff",
    real(2, 3),
    reference=extended,
    append=[[1.0] * 3],
    axis=0,
    dtypes=("float32",),
)
case("cumulative.diff", real(3), reference=extended, prepend=[0, 1], append=[7], dtypes=("int64",))
case("cumulative.diff", real(2, 3), reference=np.diff, prepend=2)
case("cumulative.diff", real(2, 3), reference=np.diff, prepend=0, append=3, axis=0)
case("cumulative.diff", real(2, 0), reference=np.diff, append=1, dtypes=("int64", "float32"))
case("cumulative.diff", real(3), reference=np.diff, prepend=0.5, dtypes=("float16", "float32"))
case("cumulative.diff", real(3), reference=np.diff, prepend=0.5, dtypes=("int8",), result="float32")


def trapezoid(y: Any, x: Any = None, **kwargs: Any) -> Any:
    """Compute with SciPy."""
    return integrate.trapezoid(y, x, **kwargs)


KEY = "cumulative.trapezoid"
axis_cases(KEY, trapezoid)
case(KEY, real(2, 5), reference=trapezoid, dx=0.25)
case(KEY, real(2, 5), real(5), reference=trapezoid)
case(KEY, real(2, 5), real(2, 5), reference=trapezoid, axis=0)
case(KEY, real(5, 2), real(5), reference=trapezoid, axis=0)
case(KEY, real(3, 1), reference=trapezoid)
case(
    KEY,
    real(3, 0),
    reference=lambda y: np.zeros(3),
    dtypes=tuple(name for name in ALL if name.startswith("float")),
)
