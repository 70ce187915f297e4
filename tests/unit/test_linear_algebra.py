"""Linear algebra, contractions and transforms: what a table of values cannot say."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.errors import LinAlgError, ShapeError
from ember_ml.ops import contraction, linalg, linearalg
from tests.backends import is_lazy

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]


def tensor(values, dtype="float32"):
    return ops.asarray(values, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
@pytest.mark.parametrize(
    ("function", "matrix"),
    [
        (linalg.inv, SINGULAR),
        (lambda x: linalg.solve(x, ops.ones_like(x)), SINGULAR),
        (linalg.cholesky, INDEFINITE),
        (lambda x: linalg.matrix_power(x, -1), SINGULAR),
    ],
)
def test_what_does_not_exist_is_an_error_or_nan(backend, function, matrix, dtype):
    x = tensor(matrix, dtype)
    if is_lazy(backend):  # it returns NaN where the others raise
        assert np.isnan(function(x).astype("complex64").numpy()).all()
    else:
        with pytest.raises(LinAlgError):
            function(x)


def test_a_singular_matrix_does_not_spoil_the_others_of_a_lazy_stack(backend):
    if not is_lazy(backend):
        pytest.skip("raises")
    out = linalg.inv(tensor([SINGULAR, [[2.0, 0.0], [0.0, 4.0]]])).numpy()
    assert np.isnan(out[0]).all()
    np.testing.assert_allclose(out[1], [[0.5, 0.0], [0.0, 0.25]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("function", [linalg.eig, linalg.svd])
def test_a_matrix_that_is_not_finite_is_an_error_or_nan(backend, function, value):
    x = tensor([[value, 1.0], [1.0, 2.0]])
    if is_lazy(backend):
        assert all(np.isnan(part.numpy()).all() for part in function(x))
    elif function is linalg.svd and np.isinf(value):
        with contextlib.suppress(LinAlgError):  # it depends on the LAPACK library
            assert np.isnan(linalg.svd(x)[1].numpy()).all()
    else:
        with pytest.raises(ValueError, match=r"inf|converge"):
            function(x)


@pytest.mark.parametrize(
    "function",
    [
        linalg.inv,
        linalg.det,
        linalg.slogdet,
        linalg.cholesky,
        linalg.eigh,
        linalg.eig,
        linalg.expm,
        lambda x: linalg.solve(x, x),
        lambda x: linalg.matrix_power(x, 2),
    ],
)
def test_square_matrices_only(backend, function):
    for shape in ((2, 3), (3,)):
        with pytest.raises(ShapeError, match="matrices"):
            function(ops.ones(shape))


@pytest.mark.parametrize("dtype", ["int64", "float32", "complex64"])
@pytest.mark.parametrize(
    ("function", "first", "second"),
    [
        (contraction.matmul, (2, 3), (2, 3)),
        (contraction.matmul, (2, 3), (4,)),
        (contraction.bmm, (2, 3, 4), (1, 4, 2)),
        (contraction.matvec, (2, 3), (2,)),
        (contraction.inner, (2, 3), (2,)),
        (contraction.outer, (2, 3), (2,)),
        (contraction.vdot, (2, 3), (2,)),
        (contraction.vecdot, (2, 3), (2, 1)),
        (contraction.cross, (2, 3), (2, 1)),
        (lambda x, y: contraction.tensordot(x, y, axes=1), (2, 3), (1, 2)),
        (lambda x, y: contraction.einsum("ij,jk->ik", x, y), (2, 3), (4, 5)),
    ],
)
def test_shapes_that_do_not_go_together_are_named(backend, function, first, second, dtype):
    with pytest.raises(ShapeError) as raised:
        function(ops.ones(first, dtype=dtype), ops.ones(second, dtype=dtype))
    for shape in (first, second):
        assert f"{dtype}{list(shape)}" in str(raised.value)


def test_contractions_do_not_mix_precisions_or_take_bools(backend):
    half, full = ops.ones((2, 2), dtype="float16"), ops.ones((2, 2))
    for function in (
        contraction.matmul,
        contraction.dot,
        contraction.vecdot,
        contraction.tensordot,
    ):
        with pytest.raises(TypeError, match="float16 and float32"):
            function(half, full)
        with pytest.raises(TypeError, match="bool"):
            function(full.astype("bool"), full.astype("bool"))
    with pytest.raises(TypeError, match="float16 and float32"):
        contraction.einsum("ij,jk->ik", half, full)


def test_scales_of_addmm_keep_the_dtype(backend):
    x = ops.ones((2, 2), dtype="int32")
    assert contraction.addmm(x, x, x, alpha=2).dtype == "int32"
    with pytest.raises(TypeError, match="alpha"):
        contraction.addmm(x, x, x, alpha=0.5)


def test_einsum_accepts_spaces_and_non_tensors(backend):
    out = contraction.einsum("i j, j -> i", [[1, 2], [3, 4]], tensor([1.0, 10.0]))
    np.testing.assert_array_equal(out.numpy(), [21.0, 43.0])
    with pytest.raises(TypeError, match="string"):
        contraction.einsum(tensor([1.0]), "i->i")


def test_block_diag(backend):
    out = linalg.block_diag([[1.0, 2.0]], tensor([[3.0], [4.0]]))
    np.testing.assert_array_equal(out.numpy(), [[1, 2, 0], [0, 0, 3], [0, 0, 4]])


def test_results_have_names(backend):
    x = tensor([[2.0, 0.0], [0.0, 3.0]])
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.lu(x)._fields == ("P", "L", "U")


def test_linalg_is_the_standards_extension():
    names = (
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power "
        "matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace "
        "vecdot vector_norm"
    )
    for name in names.split():
        assert getattr(linalg, name) is getattr(linearalg, name)


def test_frequencies_are_checked(backend):
    from ember_ml.ops.fft import fftfreq, rfftfreq

    for function in (fftfreq, rfftfreq):
        with pytest.raises(ValueError, match="positive"):
            function(0)
        with pytest.raises(TypeError, match="float"):
            function(4, dtype="int32")
