"""Rows for `ember_ml.ops.signal.framing`."""

from __future__ import annotations

import numpy as np

from tests.conformance.table import FLOATS, case, real

EXACT = ("float32", "float64")


def frames(x, frame_length, hop_length, axis=-1, pad_end=False):
    x = np.moveaxis(x, axis, -1)
    if pad_end:
        starts = range(0, x.shape[-1], hop_length)
        x = np.concatenate([x, np.zeros((*x.shape[:-1], frame_length), x.dtype)], -1)
    else:
        starts = range(0, x.shape[-1] - frame_length + 1, hop_length)
    pieces = np.stack([x[..., at : at + frame_length] for at in starts], -2)
    return np.moveaxis(pieces, (-2, -1), (axis, axis + 1) if axis >= 0 else (axis - 1, axis))


FRAME = "signal.framing.frame"
case(FRAME, real(10), 4, 2, reference=frames)
for shape, length, hop in (
    ((7,), 7, 1),
    ((7,), 1, 1),
    ((2, 9), 3, 5),
    ((2, 0, 8), 4, 3),
    ((1, 5), 2, 2),
):
    case(
        FRAME, real(*shape), length, hop, reference=frames, dtypes=("int64", "float32", "complex64")
    )
for axis in (0, 1, 2, -1, -2, -3):
    case(FRAME, real(6, 5, 7), 3, 2, reference=frames, dtypes=EXACT, axis=axis)
case(FRAME, real(6, 5, transposed=True), 3, 1, reference=frames, dtypes=EXACT)
for samples, length, hop in ((10, 4, 2), (10, 4, 3), (3, 4, 2), (1, 4, 2), (9, 2, 4), (8, 3, 8)):
    case(FRAME, real(2, samples), length, hop, reference=frames, dtypes=EXACT, pad_end=True)


def added(x, hop_length):
    *batch, count, length = x.shape
    y = np.zeros((*batch, (count - 1) * hop_length + length), x.dtype)
    for at in range(count):
        y[..., at * hop_length : at * hop_length + length] += x[..., at, :]
    return y


ADD = "signal.framing.overlap_add"
case(
    ADD,
    real(3, 4),
    2,
    reference=added,
    dtypes=("int32", "int64", *FLOATS, "complex64", "complex128"),
)
for shape, hop in (
    ((1, 4), 2),
    ((5, 1), 1),
    ((2, 5, 4), 1),
    ((2, 5, 4), 3),
    ((2, 3, 4), 4),
    ((3, 2), 5),
    ((0, 3, 4), 2),
):
    case(ADD, real(*shape), hop, reference=added, dtypes=EXACT)
