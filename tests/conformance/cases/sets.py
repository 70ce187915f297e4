"""Rows for `ember_ml.ops.sets`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import FLOATS, case, real


def unique_all(x):
    values, indices, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return values, indices, inverse.reshape(x.shape), counts


few = {"transform": np.round}  # so that elements repeat
wide = {"transform": lambda x: np.array([2**60 + 1, 2**60, 2**60 + 1, -(2**62)])}
INDEX = "int64"
for sample in (real(9, **few), real(3, 4, **few), real(0), real(), real(2, 0), real(1)):
    case("sets.unique_all", sample, reference=unique_all, result=("same", INDEX))
    case("sets.unique_values", sample, reference=lambda x: unique_all(x)[0])
    case(
        "sets.unique_counts",
        sample,
        reference=lambda x: (unique_all(x)[0], unique_all(x)[3]),
        result=("same", INDEX),
    )
    case(
        "sets.unique_inverse",
        sample,
        reference=lambda x: (unique_all(x)[0], unique_all(x)[2]),
        result=("same", INDEX),
    )
nans = real(7, transform=lambda x: np.array([np.nan, 1, np.nan, np.inf, -0.0, 0.0, 1]))
case("sets.unique_all", nans, reference=unique_all, result=("same", INDEX), dtypes=FLOATS)
case("sets.unique_values", nans, reference=lambda x: unique_all(x)[0], dtypes=FLOATS)
case(
    "sets.unique_all",
    real(4, **wide),
    reference=unique_all,
    result=("same", INDEX),
    dtypes=("int64",),
)
case("sets.unique_values", real(4, **wide), reference=np.unique, dtypes=("int64",))

case("sets.unique", real(3, 4, **few), reference=np.unique)
case(
    "sets.unique", real(3, 4, **few), True, True, True, reference=np.unique, result=("same", INDEX)
)
case("sets.unique", real(9, **few), reference=np.unique, return_counts=True, result=("same", INDEX))
rows = real(6, 2, low=0, high=1, **few)
case("sets.unique", rows, reference=np.unique, axis=0)
case(
    "sets.unique",
    real(2, 6, low=0, high=1, **few),
    True,
    True,
    True,
    1,
    reference=np.unique,
    result=("same", INDEX),
)
case(
    "sets.unique",
    real(4, 2, 2, low=0, high=1, **few),
    reference=np.unique,
    return_index=True,
    axis=-1,
    result=("same", INDEX),
)
case("sets.unique", real(0, 2), reference=np.unique, axis=0)


def unique_rows(x):
    return np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=0)[1:]


case("sets.unique_rows", rows, reference=unique_rows, result=INDEX)
for shape in ((9,), (3, 2), (0,)):
    pair = real(*shape, **few), real(5, **few)
    case("sets.union1d", *pair, reference=np.union1d)
    case("sets.intersect1d", *pair, reference=np.intersect1d)
    case("sets.setdiff1d", *pair, reference=lambda x, y: np.setdiff1d(x, y))
    case("sets.setdiff1d", pair[1], pair[0], reference=lambda x, y: np.setdiff1d(x, y))
