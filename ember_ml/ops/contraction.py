"""Products that sum over axes: matmul, einsum and related ops."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core import rules
from ember_ml._core.dispatch import binary, composite, op
from ember_ml._core.errors import ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike, TensorsLike
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
    """Return the matrix product over the last two axes, broadcast over the others.

    A vector is a row on the left and a column on the right; its axis is removed from the result.

    Args:
        x: Left operand, (..., n, k) or (k,).
        y: Right operand, (..., k, m) or (k,).
    """


@binary(rule=rules.CONTRACTION)
def bmm(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the matrix products of two batches: (b, n, k), (b, k, m) -> (b, n, m).

    Args:
        x: Left matrices, (b, n, k).
        y: Right matrices, (b, k, m).
    """


@binary(rule=rules.CONTRACTION)
def matvec(x: TensorLike, y: TensorLike) -> Tensor:
    """Return matrix-vector products: (..., n, k), (..., k) -> (..., n).

    Args:
        x: Matrices, (..., n, k).
        y: Vectors, (..., k); the leading axes broadcast with those of x.
    """


mv = matvec


@binary(rule=rules.CONTRACTION)
def inner(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the sum of products over the last axes, for every pair of the other axes.

    Args:
        x: First tensor.
        y: Second tensor, with a last axis of the same length.
    """


@binary(rule=rules.CONTRACTION)
def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the outer product of two vectors: out[i, j] = x[i] * y[j].

    Args:
        x: First vector.
        y: Second vector.
    """


@binary(rule=rules.CONTRACTION)
def vdot(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the sum of conj(x) * y over all elements.

    Args:
        x: First tensor; complex values are conjugated.
        y: Second tensor, of the same size.
    """


@binary(rule=rules.CONTRACTION)
def kron(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the Kronecker product: a scaled copy of y for every element of x.

    Args:
        x: First tensor.
        y: Second tensor.
    """


@op(rule=rules.CONTRACTION)
def vecdot(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """Return the sum of conj(x) * y along an axis; the other axes broadcast.

    Args:
        x: First tensor; complex values are conjugated.
        y: Second tensor, with the same length along `axis`.
        axis: Axis to sum over.
    """


@op(rule=rules.CONTRACTION)
def cross(x: TensorLike, y: TensorLike, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of length 3 along an axis.

    Args:
        x: First tensor.
        y: Second tensor; broadcasts with x.
        axis: Axis of the vectors.
    """


@op(rule=rules.CONTRACTION)
def tensordot(
    x: TensorLike,
    y: TensorLike,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> Tensor:
    """Return the sum of products over several axes.

    Args:
        x: First tensor.
        y: Second tensor.
        axes: Number of last axes of x to contract with the first axes of y, or a pair: the axes of
            x and the axes of y.
    """


@op(rule=rules.CONTRACTION)
def addmm(
    input: TensorLike,
    x: TensorLike,
    y: TensorLike,
    alpha: float = 1,
    beta: float = 1,
) -> Tensor:
    """Return beta * input + alpha * (x @ y).

    Args:
        input: Tensor to add; broadcasts to the product. Its values are ignored if beta is 0.
        x: Left matrix.
        y: Right matrix.
        alpha: Factor of the product.
        beta: Factor of `input`.
    """


@composite(rule=rules.CONTRACTION)
def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """Return the sum of products over the last axis of x and the second to last of y.

    Args:
        x: First tensor.
        y: Second tensor; a vector is contracted over its only axis.
    """
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((-1,), (-2,)))


@op(rule=rules.CONTRACTION)
def _einsum(tensors: TensorsLike, subscripts: str) -> Tensor:
    """Compute `einsum`."""


def einsum(subscripts: str, *operands: TensorLike) -> Tensor:
    """Return a sum of products in Einstein notation: `einsum("bij,bjk->bik", x, y)`.

    Args:
        subscripts: One letter per axis, operands separated by commas. Letters missing to the right
            of "->" are summed. "..." means broadcast axes. Without "->" the letters that occur
            once remain, sorted.
        operands: One tensor per comma-separated part.
    """
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(f"einsum: subscripts must be a string; got {subscripts!r}")
    return _einsum(operands, subscripts.replace(" ", ""))


@composite(rule=rules.CONTRACTION)
def multi_dot(tensors: TensorsLike) -> Tensor:
    """Return the product of a chain of matrices, in the order with the fewest multiplications.

    Args:
        tensors: At least two matrices; the first and the last may be vectors.
    """
    if len(tensors) == 1:
        raise ShapeError("multi_dot: expected at least two matrices; got one")
    inner_ndims = {x.ndim for x in tensors[1:-1]}
    if inner_ndims - {2} or {tensors[0].ndim, tensors[-1].ndim} - {1, 2}:
        shapes = ", ".join(str(x.shape) for x in tensors)
        raise ShapeError(
            f"multi_dot: got shapes {shapes}; expected matrices, with vectors only at the ends"
        )
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
    """Return the best split of every subchain of matrices of shape (sizes[i], sizes[i + 1])."""
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
