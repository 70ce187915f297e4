"""Rows for `ember_ml.ops.stats`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from tests.conformance.cases.reduction import quiet
from tests.conformance.table import FLOATS, case, positive, real

case("stats.moments.gaussian", real(3, 4), reference=stats.norm.pdf)
case("stats.moments.gaussian", real(3, 4), 0.5, 2.0, reference=stats.norm.pdf)
case(
    "stats.moments.gaussian",
    real(3, 4),
    real(4),
    positive(3, 1),
    reference=stats.norm.pdf,
    rtol=2.0,
)
case("stats.moments.gaussian", real(6, special=True), reference=stats.norm.pdf, dtypes=FLOATS)


def cov(x: Any, rowvar: bool = True, correction: float = 1.0) -> Any:
    """Compute with NumPy."""
    return np.cov(x, rowvar=rowvar, ddof=int(correction))


for rowvar in (True, False):
    case("stats.moments.cov", real(3, 8), reference=cov, rowvar=rowvar, rtol=4.0)
    case(
        "stats.moments.corrcoef",
        real(3, 8, transform=lambda x: x * np.array([1, 1, -1] * 8).reshape(3, 8).astype(x.dtype)),
        reference=np.corrcoef,
        rowvar=rowvar,
        rtol=4.0,
        dtypes=("float16", "bfloat16", "float32", "float64", "complex64"),
    )
case("stats.moments.cov", real(7), reference=cov, rtol=4.0)
case("stats.moments.cov", real(3, 8), reference=cov, correction=0, rtol=4.0)
case("stats.moments.cov", real(2, 1), reference=lambda x: np.full((2, 2), np.nan), dtypes=FLOATS)
case(
    "stats.moments.corrcoef", real(3, 9), reference=quiet(np.corrcoef), dtypes=("int32", "float32")
)
case(
    "stats.moments.corrcoef", real(2, 4, low=2, high=2), reference=quiet(np.corrcoef), dtypes=FLOATS
)


def standardize(x: Any, axis: Any = None, correction: float = 0.0) -> Any:
    """Return z-scores."""
    scale = np.std(x, axis=axis, keepdims=True, correction=correction)
    return (x - np.mean(x, axis=axis, keepdims=True)) / np.where(scale == 0, np.nan, scale)


case("stats.moments.standardize", real(4, 6), reference=standardize, rtol=4.0)
case("stats.moments.standardize", real(4, 6), reference=standardize, axis=1, correction=1, rtol=4.0)
case("stats.moments.standardize", real(4, 6), reference=standardize, axis=(0, 1), rtol=4.0)
case("stats.moments.standardize", real(3, low=2, high=2), reference=standardize, dtypes=FLOATS)


def skew(x: Any, **kwargs: Any) -> Any:
    """Compute with SciPy, over all axes by default."""
    return stats.skew(x, **{"axis": None, **kwargs})


def kurtosis(x: Any, excess: bool = True, **kwargs: Any) -> Any:
    """Compute with SciPy, over all axes by default."""
    return stats.kurtosis(x, fisher=excess, **{"axis": None, **kwargs})


for key, reference in (("stats.moments.skew", skew), ("stats.moments.kurtosis", kurtosis)):
    case(key, real(5, 7), reference=reference, rtol=8.0, dtypes=("int32", *FLOATS))
    for axis in (0, -1):
        case(key, real(9, 8), reference=reference, axis=axis, rtol=8.0, dtypes=("int32", *FLOATS))
    case(
        key,
        real(9, 8),
        reference=reference,
        axis=0,
        keepdims=True,
        rtol=8.0,
        dtypes=("int32", *FLOATS),
    )
    case(key, real(4, low=2, high=2), reference=quiet(reference), dtypes=FLOATS)
case(
    "stats.moments.kurtosis", real(9, 8), reference=kurtosis, excess=False, rtol=8.0, dtypes=FLOATS
)
