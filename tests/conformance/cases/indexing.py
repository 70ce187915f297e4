"""Rows for `ember_ml.ops.indexing`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import case, integers, mask, real


def update(x, key, value):
    out = np.array(x)
    out[key] = np.asarray(value).astype(out.dtype)
    return out


def add(x, key, value):
    out = np.array(x)
    np.add.at(out, key, value)
    return out


KEYS = (
    (slice(None, None, -1), 1),
    (..., slice(3, None, -2)),
    ([2, 0, 0], slice(None), -1),
    (None, slice(0, 0)),
    np.array([True, False, True]),
)
for key in KEYS:
    case("indexing.index_update", real(3, 2, 4), key, 2, reference=update)
    case("indexing.index_add", real(3, 2, 4), key, 2, reference=add)
case("indexing.index_update", real(3, 2), 1, real(2), reference=update)
case("indexing.index_update", real(), (), real(), reference=update)
case("indexing.index_add", real(3), [0, 0, -1], real(3), reference=add)
case("indexing.getitem", real(3, 2), (slice(None), 1), reference=lambda x, key: x[key])
case("indexing.setitem", real(3, 2), real(2), 1, reference=lambda x, v, key: update(x, key, v))
case(
    "indexing.additem",
    real(3, 2),
    real(2),
    1,
    reference=lambda x, value, key: add(x, key, value),
)

for shape in ((2,), (2, 3), (0,), ()):
    indices = integers(*shape, low=-3, high=2)
    for axis in (0, 1, -1):
        case("indexing.take", real(3, 4, 3), indices, reference=np.take, axis=axis)
    case("indexing.take", real(3), indices, reference=np.take)
    case(
        "indexing.gather",
        real(3, 2),
        indices,
        reference=lambda x, indices: np.take(x, indices, axis=0),
    )
case("indexing.take", real(2, 3), integers(4, low=-6, high=5), reference=np.take)
case("indexing.take", real(0, 3), integers(2), reference=np.take, axis=1)
case("indexing.take", real(3, 4, transposed=True), [1, -1], reference=np.take, axis=1)
case("indexing.gather", real(3, 2), integers(4, high=1), reference=np.take, axis=1)
for dtype in ("int8", "int32"):
    case("indexing.take", real(4), integers(3, low=-4, dtype=dtype), reference=np.take)
case("indexing.take", real(4), integers(3, dtype="uint8"), reference=np.take)


def along(x, indices, axis=-1):
    return np.take_along_axis(x, indices, axis)


for shape, places, axis in (
    ((3, 4), (3, 2), -1),
    ((3, 4), (1, 4), 0),
    ((3, 4), (5, 4), 0),
    ((1, 3), (4, 2), 1),
    ((2, 3, 4), (1, 2, 1), 1),
    ((5,), (0,), 0),
    ((0, 3), (0, 2), 1),
):
    low = -shape[axis]
    indices = integers(*places, low=low, high=shape[axis] - 1)
    case("indexing.take_along_axis", real(*shape), indices, reference=along, axis=axis)
case("indexing.take_along_axis", real(2, 3), integers(2, 2, dtype="uint8", high=2), reference=along)


def put(x, indices, values, axis=-1):
    out = np.array(x)
    np.put_along_axis(out, indices, values, axis)
    return out


def rows(array):
    """Return indices without repetition in a row."""
    return np.tile(np.array([2, -3])[: array.shape[1]], (len(array), 1))


case(
    "indexing.put_along_axis",
    real(3, 4),
    integers(3, 2, transform=rows),
    real(3, 2),
    reference=put,
)
case("indexing.put_along_axis", real(3, 4), integers(1, 4, high=2), 1, reference=put, axis=0)
case("indexing.put_along_axis", real(2, 3), integers(1, 2, transform=rows), 1, reference=put)
case("indexing.put_along_axis", real(2, 3), integers(2, 0), 1, reference=put, axis=1)
case("indexing.put_along_axis", real(0, 3), integers(0, 1), 1, reference=put, axis=1)

case(
    "indexing.gather_nd",
    real(3, 4, 2),
    integers(5, 2, low=-3, high=2),
    reference=lambda x, i: x[i[..., 0], i[..., 1]],
)
case(
    "indexing.gather_nd", real(3, 2), integers(2, 3, 1, high=2), reference=lambda x, i: x[i[..., 0]]
)
case("indexing.gather_nd", real(3), [[0], [-1]], reference=lambda x, i: x[[0, -1]])
case("indexing.gather_nd", real(3, 2), integers(0, 2), reference=lambda x, i: x[i[:, 0], i[:, 1]])

case("indexing.where", mask(2, 3), real(2, 3), real(2, 3), reference=np.where)
case("indexing.where", mask(4, 1), real(3), real(), reference=np.where)
case("indexing.where", mask(0), real(0), real(1), reference=np.where)
case("indexing.where", mask(), real(), real(2), reference=np.where)
case("indexing.where", integers(5, high=1), real(5), real(5), reference=np.where)
case("indexing.where", mask(6), real(6, special=True), real(6), reference=np.where)
case("indexing.where", mask(2, 3), real(2, 3), True, reference=np.where)
for shape in ((5,), (2, 3), (0,), (2, 0, 3), (1,)):
    case("indexing.nonzero", real(*shape), reference=np.nonzero, result="int64")
for shape in ((), (5,), (2, 3), (0,), (2, 0)):
    case("indexing.argwhere", real(*shape), reference=np.argwhere, result="int64")
    case("indexing.flatnonzero", real(*shape), reference=np.flatnonzero, result="int64")
case(
    "indexing.nonzero",
    real(3, 4, transposed=True, special=True),
    reference=np.nonzero,
    result="int64",
)

case("indexing.masked_fill", real(2, 3), mask(3), 1, reference=lambda x, m, v: np.where(m, v, x))
case("indexing.masked_fill", real(3), mask(3), real(), reference=lambda x, m, v: np.where(m, v, x))
case("indexing.masked_select", real(2, 3), mask(2, 3), reference=lambda x, m: x[m])
case(
    "indexing.masked_select",
    real(2, 3),
    mask(3),
    reference=lambda x, m: x[np.broadcast_to(m, x.shape)],
)
case(
    "indexing.masked_select",
    real(3),
    mask(2, 1),
    reference=lambda x, m: np.broadcast_to(x, (2, 3))[np.broadcast_to(m, (2, 3))],
)
case("indexing.compress", mask(3), real(3, 2), reference=np.compress, axis=0)
case("indexing.compress", mask(2), real(3, 2), reference=np.compress, axis=-1)
case("indexing.compress", mask(5), real(3, 2), reference=np.compress)
case("indexing.extract", mask(3, 2), real(3, 2), reference=np.extract)
case("indexing.extract", integers(4, high=1), real(4), reference=np.extract)

flat = real(2, 3, low=0, high=23)
case("indexing.unravel_index", flat, (2, 3, 4), reference=np.unravel_index, result="int64")
case(
    "indexing.unravel_index", real(low=0, high=5), (6,), reference=np.unravel_index, result="int64"
)
case("indexing.unravel_index", real(0), (6, 2), reference=np.unravel_index, result="int64")
case(
    "indexing.ravel_multi_index",
    [real(3, low=0, high=1), real(2, 1, low=0, high=4)],
    (2, 5),
    reference=np.ravel_multi_index,
    result="int64",
)
case(
    "indexing.ravel_multi_index",
    [real(4, low=0, high=6)],
    (7,),
    reference=np.ravel_multi_index,
    result="int64",
)
