"""Rows for `ember_ml.ops.quantiles`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.cases.reduction import quiet
from tests.conformance.table import FLOATS, case, real


def percentile(x: Any, q: Any, **kwargs: Any) -> Any:
    """Compute with NumPy."""
    return np.percentile(x, q, **kwargs)


KEY = "quantiles.quantile"
for axis in (None, 0, 1, -1, (0, 2), (2, 0), (0, 1, 2)):
    case(KEY, real(2, 3, 4), 0.3, reference=np.quantile, axis=axis)
    case(KEY, real(2, 3, 4), (0.0, 0.25, 1.0), reference=np.quantile, axis=axis, keepdims=True)
for method in ("linear", "lower", "higher", "midpoint", "nearest"):
    case(
        KEY,
        real(3, 6),
        (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0),
        reference=np.quantile,
        axis=1,
        method=method,
    )
case(KEY, real(3, 6), (), reference=np.quantile, axis=1)
case(KEY, real(), 0.5, reference=np.quantile)
case(KEY, real(1), 0.7, reference=np.quantile, axis=0)
case(KEY, real(4, 3, transposed=True), 0.7, reference=np.quantile, axis=0)
case(KEY, real(0, 3), (0.2, 0.4), reference=lambda x, q, axis: np.full((2, 3), np.nan), axis=0)
case(KEY, real(3, 4, special=True), 0.4, reference=quiet(np.quantile), axis=1, dtypes=FLOATS)
case(
    KEY,
    real(4, transform=lambda x: x * 0 + np.inf),
    (0.0, 0.4),
    reference=lambda x, q: np.array([np.inf] * 2),
    dtypes=FLOATS,
)
case(
    KEY,
    [1.0, np.inf, -np.inf],
    (0.0, 0.5, 1.0),
    reference=lambda x, q: np.array([-np.inf, 1.0, np.inf]),
    dtypes=("float32",),
)
case(KEY, real(6, low=59000, high=61000), 0.5, reference=np.quantile, dtypes=("float16",))

KEY = "quantiles.percentile"
case(KEY, real(3, 5), 30, reference=percentile, axis=1)
case(KEY, real(3, 5), (0, 12.5, 100), reference=percentile, axis=0, keepdims=True)
case(KEY, real(3, 5), 60, reference=percentile, method="higher")

KEY = "quantiles.median"
for axis in (None, 0, 1, -1, (0, 1)):
    case(KEY, real(3, 4), reference=np.median, axis=axis)
    case(KEY, real(3, 5), reference=np.median, axis=axis, keepdims=True)
case(KEY, real(), reference=np.median)
case(KEY, real(2, 0), reference=quiet(np.median), axis=1)
case(KEY, real(0, 2), reference=quiet(np.median), axis=1)
case(KEY, real(4, 3, special=True), reference=quiet(np.median), axis=1, dtypes=FLOATS)
case(KEY, real(4, low=59000, high=61000), reference=np.median, dtypes=("float16",))
