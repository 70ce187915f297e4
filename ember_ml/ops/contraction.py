"""Products that sum over axes: matmul and its relatives."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, composite, op
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.ops.elementwise import multiply

__all__ = [
    "addmm",
    "bmm",
    "cross",
    "dot",
    "einsum",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "multi_dot",
    "mv",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
]


@binary(rule=rules.CONTRACTION)
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix product of the last two axes, broadcast over the others.

    A vector is a row on the left and a column on the right, and its axis is gone from the result.
    """


@binary(rule=rules.CONTRACTION)
def bmm(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix products of two stacks of equal length: (b, n, k), (b, k, m) -> (b, n, m)."""


@binary(rule=rules.CONTRACTION)
def matvec(x: TensorLike, y: TensorLike) -> Tensor:
    """Matrices times vectors, broadcast: (..., n, k), (..., k) -> (..., n)."""


mv = matvec


@binary(rule=rules.CONTRACTION)
def inner(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of products over the last axis of both, for every pair of their other axes."""


@binary(rule=rules.CONTRACTION)
def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """x[i] * y[j] for two vectors."""


@binary(rule=rules.CONTRACTION)
def vdot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of conj(x) * y over all elements of two tensors of equal size."""


@binary(rule=rules.CONTRACTION)
def kron(x: TensorLike, y: TensorLike) -> Tensor:
    """The Kronecker product: a copy of y, scaled, for every element of x."""


@op(rule=rules.CONTRACTION)
def vecdot(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """The sum of conj(x) * y along an axis of equal length in both, the others broadcast."""


@op(rule=rules.CONTRACTION)
def cross(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """The cross product of the vectors of length 3 along an axis."""


@op(rule=rules.CONTRACTION)
def tensordot(
    x: TensorLike,
    y: TensorLike,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Tensor:
    """The sum of products over several axes.

    Args:
        axes: how many of x's last axes meet as many of y's first, or the axes of x and those of y.
    """


@op(rule=rules.CONTRACTION)
def addmm(
    input: TensorLike,
    x: TensorLike,
    y: TensorLike,
    alpha: float = 1,
    beta: float = 1,
) -> Tensor:
    """The sum of beta * input, broadcast to the product, and alpha * (x @ y).

    With beta = 0 the values of input do not matter, not even NaN.
    """


@composite(rule=rules.CONTRACTION)
def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of products over x's last axis and y's last but one (its only one, for a vector)."""
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((-1,), (-2,)))


@op(rule=rules.CONTRACTION)
def _einsum(tensors: Sequence[TensorLike], subscripts: str) -> Tensor:
    """What `einsum` computes."""


def einsum(subscripts: str, *operands: TensorLike) -> Tensor:
    """Einstein's sum convention: `einsum("bij,bjk->bik", x, y)`.

    Args:
        subscripts: a letter for each axis. Axes of one letter go together, and are summed unless
            the letter stands right of "->" too. "..." are axes to broadcast. Without "->" the
            letters that occur once remain, sorted.
        operands: a tensor for each comma-separated part.
    """
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(f"einsum: subscripts must be a string, not {subscripts!r}")
    return _einsum(operands, subscripts.replace(" ", ""))


@composite(rule=rules.CONTRACTION)
def multi_dot(tensors: Sequence[TensorLike]) -> Tensor:
    """The product of a chain of matrices, in the order that costs least.

    The first and the last may be vectors.
    """
    if len(tensors) == 1:
        raise ShapeError("multi_dot needs at least two matrices")
    inner_ndims = {x.ndim for x in tensors[1:-1]}
    if inner_ndims - {2} or {tensors[0].ndim, tensors[-1].ndim} - {1, 2}:
        shapes = ", ".join(str(x.shape) for x in tensors)
        raise ShapeError(f"multi_dot: {shapes} are not matrices, with vectors only at the ends")
    sizes = [1 if tensors[0].ndim == 1 else tensors[0].shape[0]]
    sizes += [x.shape[0] for x in tensors[1:]]
    sizes.append(1 if tensors[-1].ndim == 1 else tensors[-1].shape[-1])
    splits = _chain_splits(sizes)

    def product(first: int, last: int) -> Tensor:
        if first == last:
            return tensors[first]
        split = splits[first, last]
        return matmul(product(first, split), product(split + 1, last))

    return product(0, len(tensors) - 1)


def _chain_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where each stretch of a chain of matrices of shape (sizes[i], sizes[i + 1]) is best cut."""
    count = len(sizes) - 1
    costs = {(position, position): 0 for position in range(count)}
    splits = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            for cut in range(first, last):
                work = sizes[first] * sizes[cut + 1] * sizes[last + 1]
                cost = costs[first, cut] + costs[cut + 1, last] + work
                if (first, last) not in costs or cost < costs[first, last]:
                    costs[first, last], splits[first, last] = cost, cut
    return splits
