"""Rows for `ember_ml.ops.linearalg.diagonals`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import FLOATS, case, real

FAMILY = "linearalg.diagonals"


def diagonal(x: Any, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    return np.diagonal(x, offset, axis1, axis2)


for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 4), (1, 1), (0, 0), (0, 3), (2, 0, 0), (0, 2, 2)):
    case(f"{FAMILY}.diagonal", real(*shape), reference=diagonal)
for offset in (-4, -3, -1, 1, 2, 3, 5):
    case(f"{FAMILY}.diagonal", real(3, 4), reference=diagonal, offset=offset)
for axes in ((0, 1), (1, 0), (0, -1), (-1, -3)):
    axis1, axis2 = axes
    case(
        f"{FAMILY}.diagonal", real(2, 3, 4), reference=diagonal, axis1=axis1, axis2=axis2, offset=1
    )
case(f"{FAMILY}.diagonal", real(3, 4, transposed=True), reference=diagonal, offset=-1)


def diag_embed(x: Any, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    flat = x.reshape(-1, x.shape[-1]) if x.size else np.zeros((0, x.shape[-1]))
    matrices = [np.diag(row, offset) for row in flat]
    size = x.shape[-1] + abs(offset)
    out = np.array(matrices, x.dtype).reshape(*x.shape[:-1], size, size) if matrices else None
    if out is None:
        out = np.zeros((*x.shape[:-1], size, size), x.dtype)
    return np.moveaxis(out, (-2, -1), (axis1, axis2))


for shape in ((3,), (1,), (2, 3), (2, 2, 3), (0,), (0, 3), (2, 0)):
    for offset in (0, 1, -2):
        case(f"{FAMILY}.diag_embed", real(*shape), reference=diag_embed, offset=offset)
for axes in ((0, 1), (1, 0), (0, -1), (-1, -2), (-1, 0), (1, 2)):
    axis1, axis2 = axes
    options = {"axis1": axis1, "axis2": axis2, "offset": 1}
    case(f"{FAMILY}.diag_embed", real(2, 3), reference=diag_embed, **options)
case(f"{FAMILY}.diag_embed", real(5, special=True), reference=diag_embed, dtypes=FLOATS)

for shape in ((3,), (3, 3), (2, 4), (1,), (0,), (0, 3)):
    for k in (0, 1, -1):
        case(f"{FAMILY}.diag", real(*shape), reference=np.diag, k=k)
for shape in ((3,), (2, 2), (), (0,), (2, 0)):
    for k in (0, 2, -1):
        case(f"{FAMILY}.diagflat", real(*shape), reference=np.diagflat, k=k)


def summed(dtype: str) -> str:
    """Return the dtype of a sum: integers are summed in 64 bits."""
    if dtype.startswith("uint"):
        return "uint64"
    return "int64" if dtype == "bool" or dtype.startswith("int") else dtype


def trace(x: Any, offset: int = 0, dtype: Any = None) -> Any:
    return np.trace(x, offset, -2, -1)


SUMMED = ("int8", "int32", "int64", *FLOATS, "complex64", "complex128")
for shape in ((3, 3), (2, 4), (2, 3, 3), (0, 0), (2, 0, 3), (1, 1)):
    case(f"{FAMILY}.trace", real(*shape), reference=trace, result=summed, dtypes=SUMMED, rtol=2.0)
for offset in (-1, 1, 2, 9):
    case(
        f"{FAMILY}.trace",
        real(2, 3, 3),
        reference=trace,
        result=summed,
        dtypes=SUMMED,
        offset=offset,
        rtol=2.0,
    )
case(
    f"{FAMILY}.trace",
    real(3, 3),
    reference=trace,
    dtype="float32",
    result="float32",
    dtypes=("int32", "float16"),
)
case(f"{FAMILY}.trace", real(3, 3, low=2**60, high=2**61), reference=trace, dtypes=("int64",))


def block_diag(tensors: Any) -> Any:
    blocks = [np.atleast_2d(block) for block in tensors]
    out = np.zeros(
        (sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype
    )
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


for shapes in (
    ((2, 2), (1, 3)),
    ((2, 3),),
    ((2,), (2, 1)),
    ((), (2, 2)),
    ((0, 2), (2, 1)),
    ((2, 0), (1, 1), (3, 2)),
):
    case(f"{FAMILY}._block_diag", [real(*shape) for shape in shapes], reference=block_diag)
