"""Rows for `ember_ml.ops.counting`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import FLOATS, INTEGERS, case, integers, positive, real


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Compute with NumPy."""
    return np.bincount(x.astype(np.int64), weights, minlength)


KEY = "counting.bincount"
case(KEY, positive(20, low=0, high=7), reference=bincount, result="int64")
case(KEY, positive(0), reference=bincount, result="int64")
case(KEY, positive(5, low=0, high=3), reference=bincount, minlength=9, result="int64")
case(KEY, positive(0), reference=bincount, minlength=4, result="int64")
for dtype in ("float16", "float32"):
    weights = real(12, dtype=dtype)
    case(
        KEY, positive(12, low=0, high=5), weights, reference=bincount, dtypes=INTEGERS, result=dtype
    )
case(KEY, positive(12, low=0, high=5), integers(12), reference=bincount, result="float32")

KEY = "counting.histogram"
FINE = ("float32", "float64")
COUNTED = ("int64", "same")
case(KEY, real(50), reference=np.histogram, dtypes=FINE, result=COUNTED)
case(KEY, real(4, 10), reference=np.histogram, bins=4, dtypes=FINE, result=COUNTED)
case(KEY, real(50), reference=np.histogram, bins=5, range=(-2.0, 3.0), dtypes=FINE, result=COUNTED)
case(
    KEY,
    real(50, special=True),
    reference=np.histogram,
    bins=5,
    range=(-2.0, 3.0),
    dtypes=FINE,
    result=COUNTED,
)
case(KEY, real(50), reference=np.histogram, bins=(-3.5, -1.5, 0.5, 3.5), result=COUNTED)
case(
    KEY,
    real(50),
    reference=np.histogram,
    bins=(-3.0, -1.0, 0.0, 3.0),
    dtypes=INTEGERS,
    result=COUNTED,
)
case(KEY, real(3, 0), reference=np.histogram, bins=3, dtypes=FLOATS, result=COUNTED)
case(
    KEY,
    real(5, low=2, high=2),
    reference=np.histogram,
    bins=3,
    result=COUNTED,
    dtypes=("int32", *FINE),
)
case(KEY, real(50), reference=np.histogram, bins=6, density=True, dtypes=FINE, result="same")


def weigh(x: Any, **kwargs: Any) -> Any:
    """Compute with NumPy, counting every element three times."""
    counts, edges = np.histogram(x, **{**kwargs, "weights": np.full(x.shape, 3)})
    return counts, edges


case(KEY, real(12), reference=weigh, bins=4, weights=[3] * 12, dtypes=FINE, result=COUNTED)
case(
    KEY,
    real(12),
    reference=weigh,
    bins=4,
    weights=[3.0] * 12,
    dtypes=FINE,
    result=("float32", "same"),
)
