"""Rows for `ember_ml.ops.reduction`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tests.conformance.runner import has_dtype
from tests.conformance.table import ALL, FLOATS, INTEGERS, case, real, takes

AXES: tuple[Any, ...] = (None, 0, 1, 2, -1, -2, -3, (0, 2), (-1, 0), (0, 1, 2), ())
REAL_FLOATS = ("float16", "bfloat16", "float32", "float64")
WIDE = tuple(name for name in ALL if name != "uint8")


def summed(dtype: str) -> str:
    """Return the dtype of a sum."""
    if dtype in REAL_FLOATS or dtype.startswith("complex"):
        return dtype
    return "uint64" if dtype.startswith("u") else "int64"


def fold_cases(
    key: str, reference: Callable[..., Any], *, empty: bool = True, **options: Any
) -> None:
    """Rows for a reduction: every kind of axis, kept or not, 0-d, not contiguous, empty."""
    for axis in AXES:
        case(key, real(2, 3, 4), reference=reference, axis=axis, **options)
    for axis in (None, 1, (0, 2), ()):
        case(key, real(2, 3, 4), reference=reference, axis=axis, keepdims=True, **options)
    case(key, real(), reference=reference, **options)
    case(key, real(), reference=reference, axis=(), **options)
    case(key, real(1), reference=reference, axis=0, **options)
    case(key, real(3, 4, transposed=True), reference=reference, axis=1, **options)
    case(key, real(2, 0, 3), reference=reference, axis=0, **options)
    for axis in (None, 1, (0, 1)) if empty else ():
        case(key, real(2, 0, 3), reference=reference, axis=axis, **options)


def special_cases(key: str, reference: Callable[..., Any], **options: Any) -> None:
    """Rows with NaN and infinities."""
    floats = tuple(name for name in takes(key) if name in FLOATS)
    case(key, real(4, 3, special=True), reference=reference, axis=1, dtypes=floats, **options)
    case(key, real(7, special=True), reference=reference, dtypes=floats, **options)


def check_uint8(reference: Callable[..., Any]) -> Callable[..., None]:
    """Expect uint64 where the backend has it, else int64."""

    def check(got: Any, x: Any, **kwargs: Any) -> None:
        assert got.dtype.name == ("uint64" if has_dtype(got.backend, "uint64") else "int64")
        np.testing.assert_array_equal(got.numpy(), reference(x, **kwargs))

    return check


for key, reference in (("reduction.sum", np.sum), ("reduction.prod", np.prod)):
    fold_cases(key, reference, dtypes=WIDE, result=summed)
    special_cases(key, reference)
    for axis in (None, 0, (), (0, 1)):
        case(key, real(3, 4), check=check_uint8(reference), dtypes=("uint8",), axis=axis)
    case(
        key,
        real(3, 4, low=-9, high=9),
        reference=reference,
        dtypes=("int8",),
        dtype="int8",
        result="int8",
    )
    case(
        key,
        real(2, 3),
        reference=reference,
        dtypes=("int32", "bool"),
        dtype="float32",
        result="float32",
    )
    truncated = functools.partial(lambda fold, x, dtype: fold(x.astype(dtype)), reference)
    case(key, real(2, 3), reference=truncated, dtypes=("float32",), dtype="int64", result="int64")
case("reduction.sum", real(5000, low=1, high=1.01), reference=np.sum, dtypes=FLOATS[:3])
case("reduction.sum", real(5000, 2, low=1, high=1.01), reference=np.sum, axis=0, dtypes=FLOATS[:3])
case(
    "reduction.sum",
    real(300, low=100, high=127),
    reference=np.sum,
    dtypes=("int8", "int16"),
    result="int64",
)
case(
    "reduction.sum",
    real(5, transform=lambda x: x + 2**60),
    reference=np.sum,
    dtypes=("int64", "uint64"),
)
case("reduction.prod", real(500, low=1, high=1.02), reference=np.prod, dtypes=FLOATS[:2])
case("reduction.prod", real(500, 2, low=1, high=1.02), reference=np.prod, axis=0, dtypes=FLOATS[:2])


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's function without its warnings about empty axes."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            return function(*args, **kwargs)

    return reference


fold_cases("reduction.mean", quiet(np.mean))
special_cases("reduction.mean", np.mean)
case(
    "reduction.mean",
    real(2, 5, low=59000, high=61000),
    reference=np.mean,
    axis=1,
    dtypes=("float16",),
)
case(
    "reduction.mean", real(5000, 2, low=1, high=1.01), reference=np.mean, axis=0, dtypes=FLOATS[:3]
)


def spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's variance or deviation, with NaN where n <= correction."""

    def reference(x: Any, correction: float = 0.0, axis: Any = None, keepdims: bool = False) -> Any:
        count = np.sum(np.ones_like(x, dtype=float), axis=axis, keepdims=keepdims)
        out = quiet(function)(x, axis=axis, keepdims=keepdims, correction=correction)
        return np.where(count - correction > 0, out, np.nan)

    return reference


for key, function in (("reduction.var", np.var), ("reduction.std", np.std)):
    fold_cases(key, spread(function), result="real", rtol=2.0)
    special_cases(key, spread(function), rtol=2.0)
    for correction in (1, 1.5, 3, 4):
        case(
            key,
            real(3, 4),
            reference=spread(function),
            axis=0,
            correction=correction,
            result="real",
            rtol=2.0,
        )
    case(key, real(2, 3), reference=spread(function), axis=(), correction=1, result="real")
    case(
        key,
        real(64, low=1000, high=1001),
        reference=spread(function),
        dtypes=("float32", "float64"),
        rtol=5.0,
    )

for key, reference in (("reduction.max", np.max), ("reduction.min", np.min)):
    fold_cases(key, reference, empty=False)
    special_cases(key, reference)
    case(
        key, real(9, transform=lambda x: x + 2**60), reference=reference, dtypes=("int64", "uint64")
    )

for key, reference in (("reduction.any", np.any), ("reduction.all", np.all)):
    fold_cases(key, reference, result="bool")
    special_cases(key, reference, result="bool")
    for fill in (0, 1):
        case(key, real(3, 4, low=fill, high=fill), reference=reference, axis=1, result="bool")
    case(
        key,
        real(3, 4, low=0, high=1, transform=np.floor),
        reference=reference,
        axis=0,
        result="bool",
        dtypes=FLOATS,
    )
    case(
        key,
        real(4, transform=lambda x: x.imag * 1j),
        reference=reference,
        dtypes=("complex64",),
        result="bool",
    )

fold_cases("reduction.count_nonzero", np.count_nonzero, result="int64")
case(
    "reduction.count_nonzero",
    real(5, special=True),
    reference=np.count_nonzero,
    dtypes=FLOATS,
    result="int64",
)
case(
    "reduction.count_nonzero",
    real(4, 0),
    reference=np.count_nonzero,
    axis=1,
    keepdims=True,
    result="int64",
)


def logsumexp(x: Any, **kwargs: Any) -> Any:
    """Compute the plain formula in float64."""
    return np.log(np.sum(np.exp(x), **kwargs))


fold_cases("reduction.logsumexp", logsumexp)
special_cases("reduction.logsumexp", logsumexp)
case(
    "reduction.logsumexp",
    real(3, 5, low=900, high=1000),
    reference=special.logsumexp,
    axis=1,
    dtypes=FLOATS,
)
case(
    "reduction.logsumexp",
    real(3, 5, low=-1000, high=-900),
    reference=special.logsumexp,
    axis=1,
    dtypes=FLOATS,
)
case(
    "reduction.logsumexp",
    real(3, 2, transform=lambda x: x * 0 - np.inf),
    reference=logsumexp,
    axis=1,
    dtypes=FLOATS,
)
case(
    "reduction.logsumexp",
    real(4, 3, low=-3, high=3),
    reference=logsumexp,
    axis=1,
    dtypes=("complex64", "complex128"),
)

for key, reference in (("reduction.argmax", np.argmax), ("reduction.argmin", np.argmin)):
    for axis in (None, 0, 1, 2, -1, -2, -3):
        case(key, real(2, 3, 4), reference=reference, axis=axis, result="int64")
        case(key, real(2, 3, 4), reference=reference, axis=axis, keepdims=True, result="int64")
    case(key, real(), reference=reference, result="int64")
    case(key, real(1), reference=reference, axis=0, result="int64")
    case(key, real(0, 3), reference=reference, axis=1, result="int64")
    case(key, real(3, 4, transposed=True), reference=reference, axis=0, result="int64")
    case(
        key,
        real(5, 20, low=0, high=2, transform=np.floor),
        reference=reference,
        axis=1,
        dtypes=FLOATS,
        result="int64",
    )
    case(
        key,
        real(5, 20, low=0, high=2),
        reference=reference,
        axis=1,
        dtypes=INTEGERS,
        result="int64",
    )
    special_cases(key, reference, result="int64")
    case(
        key,
        real(50, transform=lambda x: x + 2**60),
        reference=reference,
        dtypes=("int64", "uint64"),
        result="int64",
    )
