"""Rows for `ember_ml.ops.linearalg.decompositions`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.fixed import host
from tests.conformance.matrices import (
    adjoint,
    close,
    hermitian,
    numbers,
    orthonormal,
    positive_definite,
)
from tests.conformance.table import COMPLEXES, FLOATS, INTEGERS, case, real

NO_BOOL = (*INTEGERS, *FLOATS, *COMPLEXES)
SHAPES = ((3, 3), (1, 1), (5, 2), (2, 5), (2, 3, 3), (2, 2, 4, 3))
EMPTY = ((0, 0), (0, 3, 3), (2, 0, 0))
FAMILY = "linearalg.decompositions"


def complex_of(dtype: str) -> str:
    return "complex128" if dtype in ("float64", "complex128") else "complex64"


for upper in (False, True):
    reference = lambda x, upper: np.linalg.cholesky(x, upper=upper)
    for shape in ((3, 3), (1, 1), (2, 4, 4), (2, 1, 2, 2)):
        options = {"reference": reference, "upper": upper, "dtypes": NO_BOOL, "rtol": 5.0}
        case(f"{FAMILY}.cholesky", positive_definite(*shape), **options)
    for shape in EMPTY:
        case(f"{FAMILY}.cholesky", real(*shape), reference=reference, upper=upper)
case(
    f"{FAMILY}.cholesky",
    positive_definite(40, 40),
    reference=np.linalg.cholesky,
    dtypes=("float32", "complex64"),
    rtol=30.0,
)


def is_qr(result: Any, x: Any, mode: str = "reduced") -> None:
    q, r = result
    width = x.shape[-2] if mode == "complete" else min(x.shape[-2:])
    assert q.shape == (*x.shape[:-1], width)
    assert r.shape == (*x.shape[:-2], width, x.shape[-1])
    assert q.dtype is r.dtype
    orthonormal(q, q.dtype)
    close(numbers(q) @ numbers(r), x, q.dtype)
    np.testing.assert_array_equal(host(r), np.triu(host(r)))
    diagonal = np.diagonal(numbers(r), axis1=-2, axis2=-1)
    close(np.imag(diagonal), 0.0, q.dtype)


def is_svd(result: Any, x: Any, full_matrices: bool = True) -> None:
    u, s, vh = result
    rows, columns = x.shape[-2:]
    size = min(rows, columns)
    assert s.shape == (*x.shape[:-2], size)
    assert u.shape[-2:] == (rows, rows if full_matrices else size)
    assert vh.shape[-2:] == (columns if full_matrices else size, columns)
    orthonormal(u, u.dtype)
    close(numbers(vh) @ adjoint(numbers(vh)), np.eye(vh.shape[-2]), u.dtype)
    product = numbers(u)[..., :size] * numbers(s)[..., None, :] @ numbers(vh)[..., :size, :]
    close(product, x, u.dtype)
    close(numbers(s), np.linalg.svd(x, compute_uv=False), u.dtype)


def is_lu(result: Any, x: Any) -> None:
    p, low, up = map(numbers, result)
    assert result.P.dtype is result.L.dtype is result.U.dtype
    close(p @ low @ up, x, result.L.dtype)
    assert set(np.unique(p)) <= {0.0, 1.0}
    np.testing.assert_array_equal(p.sum(-1), np.ones(p.shape[:-1]))
    np.testing.assert_array_equal(p.sum(-2), np.ones(p.shape[:-1]))
    np.testing.assert_array_equal(np.triu(low, 1), 0 * low)
    np.testing.assert_array_equal(
        np.diagonal(low, axis1=-2, axis2=-1), np.ones(low.shape[:-2] + low.shape[-1:])
    )
    np.testing.assert_array_equal(np.tril(up, -1), 0 * up)
    assert (np.abs(low) < 1.5).all(), "without pivots"


for shape in SHAPES:
    for mode in ("reduced", "complete"):
        case(f"{FAMILY}.qr", real(*shape), check=is_qr, mode=mode)
    for full in (True, False):
        case(f"{FAMILY}.svd", real(*shape), check=is_svd, full_matrices=full)
    case(f"{FAMILY}.lu", real(*shape), check=is_lu)
    case(f"{FAMILY}.svdvals", real(*shape), reference=np.linalg.svdvals, result="real", rtol=10.0)
rank_one = real(4, 3, transform=lambda x: x[:, :1] @ np.ones((1, 3)))
case(f"{FAMILY}.qr", rank_one, check=is_qr)
case(f"{FAMILY}.qr", real(4, 3, transform=np.zeros_like), check=is_qr, mode="complete")
case(f"{FAMILY}.svd", rank_one, check=is_svd)
case(f"{FAMILY}.lu", rank_one, check=is_lu)
case(f"{FAMILY}.lu", real(3, 3, transform=np.zeros_like), check=is_lu)
case(f"{FAMILY}.qr", real(4, 3, transposed=True), check=is_qr)
case(f"{FAMILY}.svd", real(4, 3, transposed=True), check=is_svd, full_matrices=False)
case(f"{FAMILY}.lu", real(4, 3, transposed=True), check=is_lu)
case(
    f"{FAMILY}.svd", real(60, 2), check=is_svd, full_matrices=False, dtypes=("float32", "complex64")
)


def is_large_qr(result: Any, x: Any) -> None:
    q, r = map(numbers, result)
    close(q @ r / 1e19, x / 1e19, result.Q.dtype)


large = real(4, 3, low=-1e19, high=1e19)  # the squares overflow
case(f"{FAMILY}.qr", large, check=is_large_qr, dtypes=("float32", "float64", *COMPLEXES))


def empty_qr(x: Any, mode: str) -> Any:
    return tuple(np.linalg.qr(x, mode))


def empty_svd(x: Any, full_matrices: bool = True) -> Any:
    return tuple(np.linalg.svd(x, full_matrices))


def empty_lu(x: Any) -> Any:
    rows, columns = x.shape[-2:]
    size = min(rows, columns)
    parts = (np.eye(rows), np.eye(rows, size), np.eye(size, columns))
    return tuple(np.broadcast_to(part, x.shape[:-2] + part.shape) for part in parts)


for shape in (*EMPTY, (0, 3), (3, 0)):
    three = ("same", "same", "same")
    case(f"{FAMILY}.qr", real(*shape), reference=empty_qr, mode="reduced", result=("same", "same"))
    for full in (True, False):
        options = {
            "reference": empty_svd,
            "full_matrices": full,
            "result": ("same", "real", "same"),
        }
        case(f"{FAMILY}.svd", real(*shape), **options)
    case(f"{FAMILY}.lu", real(*shape), reference=empty_lu, result=three)
    case(f"{FAMILY}.svdvals", real(*shape), reference=np.linalg.svdvals, result="real")


def is_eigh(result: Any, x: Any) -> None:
    values, vectors = result
    orthonormal(vectors, vectors.dtype)
    w, v = numbers(values), numbers(vectors)
    assert not np.iscomplexobj(w)
    assert (np.diff(w) >= 0).all()
    close(v * w[..., None, :] @ adjoint(v), x, vectors.dtype)


def is_eig(result: Any, x: Any) -> None:
    values, vectors = result
    assert values.dtype is vectors.dtype
    assert values.dtype.is_complex
    w, v = numbers(values), numbers(vectors)
    close(x @ v, v * w[..., None, :], values.dtype)
    close(np.linalg.norm(v, axis=-2), 1.0, values.dtype)


def is_spectrum(result: Any, x: Any) -> None:
    assert result.dtype.is_complex
    assert result.shape == x.shape[:-1]
    got, want = numbers(result), np.linalg.eigvals(x).astype(np.complex128)
    for one, other in zip(got.reshape(-1, x.shape[-1]), want.reshape(-1, x.shape[-1]), strict=True):
        distance = np.abs(one[:, None] - other[None, :])
        assert (distance.min(0) < 1e-2).all()
        assert (distance.min(1) < 1e-2).all()


EXACT = ("bool", *INTEGERS, "float32", "float64", *COMPLEXES)
for shape in ((3, 3), (1, 1), (2, 4, 4), (2, 1, 2, 2)):
    case(f"{FAMILY}.eigh", hermitian(*shape), check=is_eigh, dtypes=NO_BOOL)
    case(
        f"{FAMILY}.eigvalsh",
        hermitian(*shape),
        reference=np.linalg.eigvalsh,
        result="real",
        dtypes=NO_BOOL,
        rtol=10.0,
    )
    case(f"{FAMILY}.eig", real(*shape), check=is_eig)
    case(f"{FAMILY}.eigvals", real(*shape), check=is_spectrum, dtypes=EXACT)
rotation = real(2, 2, transform=lambda x: np.array([[0, -1], [1, 0]]))
case(f"{FAMILY}.eig", rotation, check=is_eig, dtypes=("int32", *FLOATS, *COMPLEXES))
case(f"{FAMILY}.eigvals", rotation, check=is_spectrum, dtypes=("int32", *FLOATS, *COMPLEXES))
case(f"{FAMILY}.eigvalsh", real(3, 3), reference=np.linalg.eigvalsh, result="real", rtol=10.0)
for shape in EMPTY:
    vectors, complexes = ("real", "same"), (complex_of, complex_of)
    case(
        f"{FAMILY}.eigh",
        real(*shape),
        reference=lambda x: (np.zeros(x.shape[:-1]), x),
        result=vectors,
    )
    case(f"{FAMILY}.eigvalsh", real(*shape), reference=np.linalg.eigvalsh, result="real")
    case(
        f"{FAMILY}.eig",
        real(*shape),
        reference=lambda x: (np.zeros(x.shape[:-1]), x),
        result=complexes,
    )
    case(
        f"{FAMILY}.eigvals",
        real(*shape),
        reference=lambda x: np.zeros(x.shape[:-1]),
        result=complex_of,
    )
