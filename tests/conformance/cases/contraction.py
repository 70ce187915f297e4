"""Rows for `ember_ml.ops.contraction`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.table import FLOATS, case, real


def wide(*shape: int) -> Any:
    """Return integers whose products overflow 64 bits."""
    return real(*shape, low=-(2**62), high=2**62)


def exact(key: str, *inputs: Any, **options: Any) -> None:
    """Rows above 2**53, where a detour over floats shows."""
    case(key, *inputs, dtypes=("int64", "uint64"), **options)


MATMUL = (
    ((2, 3), (3, 4)),
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((5, 2, 3), (3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((3,), (5, 3, 2)),
    ((5, 2, 3), (3,)),
    ((1, 1), (1, 1)),
    ((2, 0), (0, 3)),
    ((0,), (0,)),
    ((0, 2), (2, 3)),
    ((0, 2, 3), (3, 1)),
    ((2, 3), (3, 0)),
    ((4, 0), (0,)),
)
for first, second in MATMUL:
    case("contraction.matmul", real(*first), real(*second), reference=np.matmul)
case(
    "contraction.matmul",
    real(3, 4, transposed=True),
    real(4, 5, transposed=True),
    reference=np.matmul,
)
case(
    "contraction.matmul", real(3, 300), real(300, 2), reference=np.matmul, dtypes=FLOATS, rtol=30.0
)
case("contraction.matmul", real(5, special=True), real(5, 2), reference=np.matmul, dtypes=FLOATS)
exact("contraction.matmul", wide(4, 7), wide(7, 3), reference=np.matmul)
exact("contraction.matmul", wide(2, 1, 1, 3), wide(4, 3, 2), reference=np.matmul)
case(
    "contraction.matmul",
    real(6, 9, low=-128, high=127),
    real(9, low=-128, high=127),
    reference=np.matmul,
    dtypes=("int8",),
)
case(
    "contraction.matmul",
    real(4, 9, low=-(2**31), high=2**31 - 1),
    real(9, 4, low=-(2**31), high=2**31 - 1),
    reference=np.matmul,
    dtypes=("int32",),
)

for first, second in (
    ((2, 3, 4), (2, 4, 5)),
    ((1, 1, 1), (1, 1, 1)),
    ((0, 2, 3), (0, 3, 2)),
    ((2, 3, 0), (2, 0, 4)),
):
    case("contraction.bmm", real(*first), real(*second), reference=np.matmul)

for first, second in (
    ((2, 3), (3,)),
    ((5, 2, 3), (3,)),
    ((2, 3), (4, 3)),
    ((4, 1, 2, 3), (5, 3)),
    ((2, 0), (0,)),
    ((0, 3), (3,)),
):
    case("contraction.matvec", real(*first), real(*second), reference=np.matvec)
exact("contraction.matvec", wide(2, 3), wide(3), reference=np.matvec)

for first, second in (
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((2, 3), (4, 3)),
    ((2, 1, 3), (2, 3)),
    ((), (2, 3)),
    ((2,), ()),
    ((0,), (0,)),
    ((2, 0), (3, 0)),
):
    case("contraction.inner", real(*first), real(*second), reference=np.inner)
exact("contraction.inner", wide(2, 3), wide(4, 3), reference=np.inner)

for first, second in (((3,), (2,)), ((1,), (1,)), ((0,), (3,)), ((3,), (0,))):
    case("contraction.outer", real(*first), real(*second), reference=np.outer)
exact("contraction.outer", wide(3), wide(2), reference=np.outer)

for first, second in (((3,), (3,)), ((2, 3), (3, 2)), ((), ()), ((0,), (0,)), ((2, 3), (6,))):
    case("contraction.vdot", real(*first), real(*second), reference=np.vdot)
case("contraction.vdot", real(3, 4, transposed=True), real(3, 4), reference=np.vdot)
exact("contraction.vdot", wide(9), wide(9), reference=np.vdot)

for first, second in (
    ((3,), (2,)),
    ((2, 3), (3, 2)),
    ((2,), (2, 3)),
    ((), (2,)),
    ((2, 1, 2), (3,)),
    ((0,), (3,)),
    ((2, 0), (3, 2)),
):
    case("contraction.kron", real(*first), real(*second), reference=np.kron)
exact("contraction.kron", wide(2, 2), wide(3), reference=np.kron)

for first, second, axis in (
    ((3,), (3,), -1),
    ((2, 3), (3,), -1),
    ((4, 1, 3), (2, 3), -1),
    ((3, 2), (3, 2), 0),
    ((3, 4), (2, 3, 4), -2),
    ((2, 0), (2, 0), -1),
    ((0, 3), (3,), -1),
    ((1, 1), (1, 1), 1),
):
    case("contraction.vecdot", real(*first), real(*second), reference=np.linalg.vecdot, axis=axis)
exact("contraction.vecdot", wide(2, 5), wide(5), reference=np.linalg.vecdot)

for first, second, axis in (
    ((3,), (3,), -1),
    ((2, 3), (3,), -1),
    ((2, 1, 3), (4, 3), -1),
    ((3, 4), (3, 4), 0),
    ((2, 3, 4), (2, 3, 4), 1),
    ((3, 4), (3, 4), -2),
    ((0, 3), (0, 3), -1),
):
    case("contraction.cross", real(*first), real(*second), reference=np.linalg.cross, axis=axis)
exact("contraction.cross", wide(2, 3), wide(3), reference=np.linalg.cross)

for first, second, axes in (
    ((2, 3, 4), (3, 4, 5), 2),
    ((2, 3), (3, 2), 1),
    ((2,), (3, 2), 0),
    ((2, 3), (2, 3), 2),
    ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0))),
    ((2, 3, 4), (4, 5), ((-1,), (-2,))),
    ((2, 3), (3, 2), ((), ())),
    ((2, 0), (0, 3), 1),
    ((0, 2), (2, 3), 1),
    ((), (), 0),
):
    case("contraction.tensordot", real(*first), real(*second), reference=np.tensordot, axes=axes)
exact("contraction.tensordot", wide(2, 3), wide(3, 2), reference=np.tensordot, axes=1)


def addmm(base: Any, x: Any, y: Any, alpha: Any = 1, beta: Any = 1) -> Any:
    return alpha * (x @ y) if beta == 0 else beta * base + alpha * (x @ y)


for shape, scales in (
    ((2, 4), {}),
    ((4,), {"alpha": 2, "beta": 3}),
    ((2, 1), {"alpha": 2}),
    ((), {"beta": 2}),
    ((4,), {"beta": 0}),
):
    case("contraction.addmm", real(*shape), real(2, 3), real(3, 4), reference=addmm, **scales)
case(
    "contraction.addmm",
    real(2, 4),
    real(2, 3),
    real(3, 4),
    reference=addmm,
    alpha=0.5,
    beta=-1.5,
    dtypes=("float16", "bfloat16", "float32", "float64", "complex64"),
)
case(
    "contraction.addmm",
    real(5, special=True),
    real(2, 3),
    real(3, 5),
    reference=addmm,
    beta=0,
    dtypes=FLOATS,
)
case(
    "contraction.addmm",
    real(4),
    real(5, 2, 3),
    real(3, 4),
    reference=addmm,
    rtol=3.0,
    alpha=2,
    beta=3,
)
case("contraction.addmm", real(4), real(2, 0), real(0, 4), reference=addmm)
exact("contraction.addmm", wide(2, 2), wide(2, 3), wide(3, 2), reference=addmm, alpha=3)

for first, second in (
    ((3,), (3,)),
    ((2, 3), (3, 4)),
    ((), (2, 3)),
    ((2,), ()),
    ((2, 3), (3,)),
    ((2, 3), (4, 3, 5)),
    ((2, 3, 4), (4,)),
    ((0,), (0,)),
):
    case("contraction.dot", real(*first), real(*second), reference=np.dot)
exact("contraction.dot", wide(2, 3), wide(3, 2), reference=np.dot)


def einsum(tensors: Any, subscripts: str) -> Any:
    return np.einsum(subscripts, *tensors)


for shapes, subscripts in (
    (((2, 3), (3, 4)), "ij,jk->ik"),
    (((2, 3), (3, 4)), "ij,jk"),
    (((2, 3), (3, 4)), "ij,jk->ki"),
    (((5, 2, 3), (5, 3, 4)), "bij,bjk->bik"),
    (((5, 2, 3), (3, 4)), "...ij,...jk->...ik"),
    (((5, 1, 2, 3), (4, 3)), "...ij,...j"),
    (((3, 3),), "ii->i"),
    (((3, 3),), "ii"),
    (((2, 3),), "ij->ji"),
    (((2, 3),), "ij->"),
    (((2, 3, 4),), "i...->..."),
    (((3,), (2,)), "i,j->ij"),
    (((3,), (2,)), "i,j->"),
    (((3,), (3,), (3,)), "i,i,i->i"),
    (((2, 3), (3, 4), (4, 2)), "ij,jk,kl->il"),
    (((2, 3), (3, 4), (4,), (2,)), "ij,jk,k,i"),
    (((5, 2, 3), (5, 3), (2,)), "...ij,...j,i->...i"),
    (((2, 1), (3, 4)), "ij,jk->ik"),
    (((2, 0), (0, 3)), "ij,jk->ik"),
    (((0, 2), (2,)), "ij,j->i"),
    (((), (2,)), ",i->i"),
    (((3, 3), (3,)), "ii,i->i"),
    (((2, 3), (2, 3)), "Ab,Ab->bA"),
):
    case("contraction._einsum", [real(*shape) for shape in shapes], subscripts, reference=einsum)
exact("contraction._einsum", [wide(2, 3), wide(3, 4)], "ij,jk->ik", reference=einsum)
exact("contraction._einsum", [wide(2, 3), wide(3, 4), wide(4)], "ij,jk,k->i", reference=einsum)


def multi_dot(tensors: Any) -> Any:
    out = tensors[0]
    for tensor in tensors[1:]:
        out = out @ tensor
    return out


for shapes in (
    ((2, 3), (3, 4)),
    ((2, 3), (3, 4), (4, 2)),
    ((3,), (3, 4), (4, 2)),
    ((3,), (3, 4), (4,)),
    ((3,), (3,)),
    ((2, 3), (3, 4), (4, 1), (1, 5)),
    ((2, 0), (0, 3), (3, 2)),
):
    case("contraction.multi_dot", [real(*shape) for shape in shapes], reference=multi_dot, rtol=3.0)
exact("contraction.multi_dot", [wide(2, 3), wide(3, 1), wide(1, 2)], reference=multi_dot)
