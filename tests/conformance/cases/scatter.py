"""Rows for `ember_ml.ops.scatter`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import COMPLEXES, FLOATS, INTEGERS, case, integers, real

FOLDS = {
    "add": np.sum,
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "mul": np.prod,
    "prod": np.prod,
}


def reference(aggr):
    """Compute one slot at a time."""

    def scatter(values, indices, dim_size=None, axis=0):
        indices = np.asarray(indices, np.int64)
        values = np.moveaxis(values, axis, 0)[: len(indices)]
        size = (int(indices.max()) + 1 if len(indices) else 0) if dim_size is None else dim_size
        dtype = float if aggr == "mean" and values.dtype.kind in "biu" else values.dtype
        out = np.zeros((size, *values.shape[1:]), dtype)
        for slot in set(indices.tolist()):
            out[slot] = FOLDS[aggr](values[indices == slot], axis=0)
        return np.moveaxis(out, 0, axis)

    return scatter


def with_aggr(values, indices, dim_size=None, aggr="add", axis=0):
    return reference(aggr)(values, indices, dim_size, axis)


NUMERIC = (*INTEGERS, *FLOATS, *COMPLEXES)
DTYPES = {"max": ("bool", *INTEGERS, *FLOATS), "min": ("bool", *INTEGERS, *FLOATS)}
SEGMENT = {"add": "sum", "mean": "mean", "max": "max", "min": "min", "mul": "prod"}


def mean_dtype(dtype):
    return dtype if dtype in (*FLOATS, *COMPLEXES) else "float32"


for aggr, name in SEGMENT.items():
    result = mean_dtype if aggr == "mean" else "same"
    options = {"dtypes": DTYPES.get(aggr, NUMERIC), "result": result, "rtol": 4.0}
    values = real(7, low=-2, high=2)
    matrix = real(5, 3, low=-2, high=2)
    for key, size in ((f"segment_{name}", "num_segments"), (f"scatter_{aggr}", "dim_size")):
        key = f"scatter.{key}"
        fold = reference(aggr)
        sized = lambda v, i, *, fold=fold, **kwargs: fold(v, i, *kwargs.values())
        case(key, values, integers(7, high=4), reference=fold, **options)
        case(key, matrix, integers(5, high=2, dtype="int32"), reference=fold, **options)
        case(key, matrix, integers(5, high=2), reference=sized, **{size: 6}, **options)
        case(key, real(0), integers(0, dtype="int32"), reference=fold, **options)
        case(key, real(0, 2), integers(0), reference=sized, **{size: 3}, **options)
        case(key, real(3, 0), integers(3), reference=fold, **options)
        case(
            key,
            real(4, 3, transposed=True, low=-2, high=2),
            [1, 3, 1, 1],
            reference=fold,
            **options,
        )
        special = tuple(dtype for dtype in options["dtypes"] if dtype in FLOATS)
        rows = {**options, "dtypes": special}
        case(key, real(8, special=True), [0, 1, 2, 3, 3, 0, 1, 2], reference=fold, **rows)
        case(key, real(8, special=True), [4, 1, 2, 3, 3, 4, 5, 4], reference=fold, **rows)
    case(
        f"scatter.scatter_{aggr}",
        real(10, low=-2, high=2),
        [0, 1, 0],
        reference=reference(aggr),
        **options,
    )
    case(
        f"scatter.scatter_{aggr}",
        real(2, 4, 3, low=-2, high=2),
        integers(3, high=2),
        reference=reference(aggr),
        axis=-2,
        **options,
    )

for aggr in FOLDS:
    options = {"dtypes": DTYPES.get(aggr, NUMERIC), "rtol": 4.0}
    if aggr == "mean":
        options["result"] = mean_dtype
    case(
        "scatter.scatter",
        real(6, 2),
        integers(5, high=3),
        reference=with_aggr,
        aggr=aggr,
        **options,
    )
case("scatter.scatter", real(4, 6), integers(6), 5, "add", -1, reference=with_aggr, dtypes=NUMERIC)
case("scatter.scatter", real(10000), [0, 9999], reference=with_aggr, dtypes=("float32", "int64"))
case("scatter.scatter", real(0), integers(0, dtype="int32"), reference=with_aggr, dtypes=NUMERIC)

huge = real(3, transform=lambda x: np.array([2**60, 1, 2**61 + 1]))
for name in ("sum", "max"):
    case(
        f"scatter.segment_{name}",
        huge,
        [1, 1, 0],
        reference=reference("add" if name == "sum" else "max"),
        dtypes=("int64",),
    )
many = real(3000, low=20, high=30)  # a running sum in float16 would end at 65504 or stall before
case("scatter.segment_mean", many, [0] * 3000, reference=reference("mean"), dtypes=FLOATS)
case(
    "scatter.segment_sum",
    real(3000, low=0.5, high=1),
    [0] * 3000,
    reference=reference("add"),
    dtypes=FLOATS,
)


def scatter_nd(indices, updates, shape):
    indices = np.asarray(indices)
    out = np.zeros(shape, updates.dtype)
    np.add.at(out, tuple(np.moveaxis(indices, -1, 0)), updates)
    return out


case(
    "scatter.scatter_nd",
    integers(5, 2, high=2),
    real(5),
    (3, 4),
    reference=scatter_nd,
    dtypes=NUMERIC,
)
case(
    "scatter.scatter_nd",
    integers(2, 3, 1),
    real(2, 3, 4),
    (4, 4),
    reference=scatter_nd,
    dtypes=NUMERIC,
)
case("scatter.scatter_nd", [[0], [0]], real(2, 2), (2, 2), reference=scatter_nd, dtypes=NUMERIC)
case("scatter.scatter_nd", integers(0, 2), real(0), (3, 4), reference=scatter_nd, dtypes=NUMERIC)
