"""Rows for `ember_ml.ops.sorting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.fixed import fixed
from tests.conformance.table import FLOATS, axis_cases, case, real

BIG = ("int64", "uint64")


def beyond_floats(x: Any) -> Any:
    """Return neighbors that float64 cannot distinguish."""
    return x + 2**60


def ordered(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort with NumPy; NaN is the largest."""
    out = np.sort(x, axis=axis)
    return np.flip(out, axis) if descending else out


def order(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort each line with Python's stable sort."""

    def line(values: Any) -> list[int]:
        keys = [(value != value, 0 if value != value else value) for value in values.tolist()]
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)

    if x.size == 0:
        return np.zeros(x.shape, int)
    return np.apply_along_axis(line, axis, x)


for key, reference, result in (
    ("sorting.sort", ordered, "same"),
    ("sorting.argsort", order, "int64"),
):
    for descending in (False, True):
        axis_cases(key, reference, descending=descending, result=result)
        case(key, real(30), reference=reference, descending=descending, result=result)
        case(
            key,
            real(4, 40, low=0, high=3, transform=np.floor),
            reference=reference,
            descending=descending,
            dtypes=FLOATS,
            result=result,
        )
        case(
            key,
            real(2, 7, special=True),
            reference=reference,
            descending=descending,
            dtypes=FLOATS,
            result=result,
        )
        case(
            key,
            real(12, special=True),
            reference=reference,
            descending=descending,
            dtypes=FLOATS,
            result=result,
        )
        case(key, real(2, 0, 3), reference=reference, axis=1, descending=descending, result=result)
        case(key, real(2, 0, 3), reference=reference, axis=2, descending=descending, result=result)
        case(
            key,
            real(50, transform=beyond_floats),
            reference=reference,
            descending=descending,
            dtypes=BIG,
            result=result,
        )
case("sorting.sort", real(5, 6), reference=ordered, stable=False)


def check_topk(
    got: Any,
    x: Any,
    k: int,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002
) -> None:
    """Check the values, and that the indices lead to them."""
    want = np.take(ordered(x, axis, descending=largest), np.arange(k), axis)
    assert got.values.dtype.name != "int64" or x.dtype.kind in "iu"
    assert got.indices.dtype.name == "int64"
    values = (
        got.values.astype("float32").numpy()
        if got.values.dtype == "bfloat16"
        else got.values.numpy()
    )
    found = np.take_along_axis(x, got.indices.numpy(), axis).astype(values.dtype)
    if not sorted:
        values, found = np.sort(values, axis), np.sort(found, axis)
        want = np.sort(want, axis)
    np.testing.assert_array_equal(values, want.astype(values.dtype))
    np.testing.assert_array_equal(found, values)


for largest in (True, False):
    for k in (0, 1, 3):
        case("sorting.topk", real(4, 3), k, check=check_topk, largest=largest)
    for axis in (0, 1, -3):
        case("sorting.topk", real(3, 4, 2), 2, check=check_topk, axis=axis, largest=largest)
    case("sorting.topk", real(20), 5, check=check_topk, largest=largest, sorted=False)
    case("sorting.topk", real(9, special=True), 4, check=check_topk, largest=largest, dtypes=FLOATS)
    case(
        "sorting.topk",
        real(50, transform=beyond_floats),
        7,
        check=check_topk,
        largest=largest,
        dtypes=BIG,
    )
    case("sorting.topk", real(3, 4, transposed=True), 2, check=check_topk, axis=0, largest=largest)


def searchsorted(x1: Any, x2: Any, sorter: Any = None, side: str = "left") -> Any:
    """Compute with NumPy."""
    return np.searchsorted(np.asarray(x1), x2, side, sorter)


KEY = "sorting.searchsorted"
for side in ("left", "right"):
    for shape in ((), (0,), (5,), (2, 3)):
        case(
            KEY,
            real(7, transform=np.sort),
            real(*shape),
            reference=searchsorted,
            side=side,
            result="int64",
        )
    case(KEY, real(0), real(3), reference=searchsorted, side=side, result="int64")
    case(
        KEY,
        fixed(3, 1, 2, 4),
        fixed(2, 0, 3, 9, 4),
        fixed(1, 2, 0, 3, dtype="int64"),
        reference=searchsorted,
        side=side,
        result="int64",
    )
    case(
        KEY,
        real(9, transform=np.sort, special=True),
        real(6, special=True),
        reference=searchsorted,
        side=side,
        dtypes=FLOATS,
        result="int64",
    )
    case(
        KEY,
        real(30, transform=lambda x: np.sort(beyond_floats(x))),
        real(9, transform=beyond_floats),
        reference=searchsorted,
        side=side,
        dtypes=BIG,
        result="int64",
    )
case(
    KEY,
    [3.0, 1.0, 2.0],
    real(6),
    [1, 2, 0],
    reference=searchsorted,
    dtypes=("float32",),
    result="int64",
)

for right in (False, True):
    case(
        "sorting.digitize",
        real(3, 4),
        real(5, transform=np.sort),
        reference=np.digitize,
        right=right,
        result="int64",
    )
    case(
        "sorting.bucketize",
        real(3, 4),
        real(5, transform=np.sort),
        reference=lambda x, b, right: np.digitize(x, b, right=not right),
        right=right,
        result="int64",
    )
