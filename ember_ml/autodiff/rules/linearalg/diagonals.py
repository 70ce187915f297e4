"""VJP rules of diagonals and block-diagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.autodiff.rules import vjp_rule, vjps
from ember_ml.ops.indexing import getitem
from ember_ml.ops.linearalg import diagonals

vjps(
    diagonals.diag_embed,
    x=lambda g, out, x, offset=0, axis1=-2, axis2=-1: diagonals.diagonal(g, offset, axis1, axis2),
)


@vjp_rule(diagonals.diagonal)
def _(
    g: Tensor, out: Tensor, x: Tensor, offset: int = 0, axis1: int = -2, axis2: int = -1
) -> Tensor:
    axes = [axis % x.ndim for axis in (axis1, axis2)]
    rows, columns = (x.shape[axis] for axis in axes)
    size = out.shape[-1] + abs(offset)
    square = diagonals.diag_embed(g, offset)  # the smallest square matrix with this diagonal
    if (size, size) != (rows, columns):
        square = getitem(square, (..., slice(rows), slice(columns)))
        missing = [(0, rows - square.shape[-2]), (0, columns - square.shape[-1])]
        square = ops.pad_constant(square, [(0, 0)] * (x.ndim - 2) + missing)
    return square if axes == [x.ndim - 2, x.ndim - 1] else ops.moveaxis(square, (-2, -1), axes)


@vjp_rule(diagonals._block_diag)
def _(g: Tensor, out: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    grads = []
    row = column = 0
    for x in tensors:
        height, width = (1, 1, *x.shape)[-2:]
        block = getitem(g, (slice(row, row + height), slice(column, column + width)))
        grads.append(ops.reshape(block, x.shape))
        row, column = row + height, column + width
    return grads
