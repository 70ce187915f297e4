"""Rows for `ember_ml.ops.nan_reduction`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.cases.reduction import check_uint8, quiet, spread, summed
from tests.conformance.table import ALL, FLOATS, case, real, takes


def holed(x: Any) -> Any:
    """Set every third element and a whole row to NaN."""
    if x.dtype.kind not in "fc":
        return x
    out = x.copy()
    out.reshape(-1)[::3] = np.nan
    out[:1] = np.nan
    return out


NUMERIC = tuple(name for name in ALL if name not in ("bool", "uint8"))
ROWS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("nan_reduction.nansum", np.nansum, {"result": summed, "dtypes": NUMERIC}),
    ("nan_reduction.nanmean", np.nanmean, {}),
    ("nan_reduction.nanvar", spread(np.nanvar), {"rtol": 2.0}),
    ("nan_reduction.nanstd", spread(np.nanstd), {"rtol": 2.0}),
    ("nan_reduction.nanmax", np.nanmax, {}),
    ("nan_reduction.nanmin", np.nanmin, {}),
)

for key, reference, options in ROWS:
    for axis in (None, 0, 1, -1, (0, 1)):
        case(key, real(3, 4, transform=holed), reference=quiet(reference), axis=axis, **options)
    case(
        key,
        real(3, 4, transform=holed),
        reference=quiet(reference),
        axis=1,
        keepdims=True,
        **options,
    )
    case(key, real(), reference=quiet(reference), **options)
    case(key, real(4, 3, transposed=True), reference=quiet(reference), axis=0, **options)
    case(key, real(0, 3), reference=quiet(reference), axis=1, **options)
    floats = tuple(name for name in takes(key) if name in FLOATS)
    infinite = real(
        2,
        3,
        transform=lambda x: np.where(
            np.arange(3) == 1, np.inf, np.where(np.arange(3) == 2, np.nan, x)
        ),
    )
    case(key, infinite, reference=quiet(reference), axis=1, **{**options, "dtypes": floats})

case("nan_reduction.nansum", real(3, 4), check=check_uint8(np.nansum), dtypes=("uint8",))
case("nan_reduction.nansum", real(0, 3), reference=np.nansum, axis=0, dtypes=FLOATS)
case("nan_reduction.nanmean", real(0, 3), reference=quiet(np.nanmean), axis=0, dtypes=FLOATS)
for correction in (1, 2.5):
    case(
        "nan_reduction.nanvar",
        real(4, 3),
        reference=spread(np.nanvar),
        axis=0,
        correction=correction,
        rtol=2.0,
    )
