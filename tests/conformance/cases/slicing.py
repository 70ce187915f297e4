"""Rows for `ember_ml.ops.slicing`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import case, integers, real


def key(shape, starts, sizes):
    out = []
    for start, size, length in zip(np.asarray(starts).tolist(), sizes, shape, strict=True):
        first = min(max(start + length if start < 0 else start, 0), length - size)
        out.append(slice(first, first + size))
    return tuple(out)


def read(x, starts, sizes):
    return x[key(x.shape, starts, sizes)]


def write(x, update, starts):
    out = np.array(x)
    out[key(x.shape, starts, update.shape)] = update
    return out


for sizes in ((2, 3), (4, 5), (0, 2), (1, 1)):
    for low, high in ((0, 2), (-3, -1), (5, 9)):
        starts = integers(2, low=low, high=high)
        case("slicing.dynamic_slice", real(4, 5), starts, sizes, reference=read)
        case("slicing.dynamic_update_slice", real(4, 5), real(*sizes), starts, reference=write)
case("slicing.dynamic_slice", real(4, 5), [1, -2], (2, 2), reference=read)
case("slicing.dynamic_slice", real(4, 5), [integers(), 9], (2, 2), reference=read)
case("slicing.dynamic_slice", real(4), integers(1, dtype="int32"), [2], reference=read)
case("slicing.dynamic_slice", real(), [], (), reference=lambda x, *_: x)
case("slicing.dynamic_update_slice", real(4, 5), real(2, 2), [3, 0], reference=write)
case("slicing.dynamic_update_slice", real(3), real(1), [integers()], reference=write)
case(
    "slicing.dynamic_update_slice",
    real(),
    real(),
    integers(0),
    reference=lambda x, update, _: update,
)
