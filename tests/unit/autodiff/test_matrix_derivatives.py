"""Second and third derivatives of linear algebra, at singular matrices where they are finite."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import ops, use_backend
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad, hessian, jacobian, jvp, vmap
from ember_ml.ops import linearalg
from tests.backends import has_dtype, with_dtype

REFERENCE = "numpy"
SIZE = 3
Function = Callable[[EmberTensor], EmberTensor]

pytestmark = pytest.mark.filterwarnings("ignore:vmap computes", "ignore::UserWarning")


def minor(x: Any, rows: tuple[int, ...], columns: tuple[int, ...]) -> float:
    """Return the determinant of x without some rows and columns."""
    kept = np.delete(np.delete(x, rows, 0), columns, 1)
    return float(np.linalg.det(kept)) if kept.size else 1.0


def expected_hessian(x: Any) -> Any:
    """Return the second derivatives of the determinant, signed minors of two rows and columns."""
    places = list(itertools.permutations(range(len(x)), 2))
    out = np.zeros((len(x),) * 4)
    for (i, k), (j, m) in itertools.product(places, places):
        sign = (-1) ** (i + j + k + m) * (1 if (i < k) == (j < m) else -1)
        out[i, j, k, m] = sign * minor(x, (i, k), (j, m))
    return out


def of_rank(rank: int, size: int = SIZE) -> Any:
    rng = np.random.default_rng(rank)
    return rng.normal(size=(size, rank)) @ rng.normal(size=(rank, size))


def widest(backend: str) -> str:
    return "float64" if has_dtype(backend, "float64") else "float32"


@pytest.mark.parametrize("rank", range(SIZE + 1))
def test_the_hessian_of_det_is_finite_at_every_rank(rank: int, backend: str) -> None:
    dtype = widest(backend)
    x = of_rank(rank)
    got = hessian(linearalg.det)(convert_to_tensor(x, dtype=dtype)).numpy()
    np.testing.assert_allclose(got, expected_hessian(x), atol=2e2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("rank", [4, 6])
@pytest.mark.parametrize("backend", with_dtype("float64"), indirect=True)
def test_the_hessian_of_larger_determinants(rank: int, backend: str) -> None:
    x = of_rank(rank, 6)
    got = hessian(linearalg.det)(convert_to_tensor(x, dtype="float64")).numpy()
    np.testing.assert_allclose(got, expected_hessian(x), atol=1e-11)


@pytest.mark.parametrize("rank", range(SIZE + 1))
@pytest.mark.parametrize("backend", with_dtype("float64"), indirect=True)
def test_third_derivatives_of_det_are_permutation_signs(rank: int, backend: str) -> None:
    x = convert_to_tensor(of_rank(rank), dtype="float64")
    got = jacobian(hessian(linearalg.det))(x).numpy()
    signs = np.zeros((SIZE,) * 3)
    for places in itertools.permutations(range(SIZE)):
        signs[places] = np.linalg.det(np.eye(SIZE)[list(places)])
    np.testing.assert_allclose(got, np.einsum("ikm,jln->ijklmn", signs, signs), atol=1e-11)


@pytest.mark.parametrize("rank", [2, 3])
def test_the_compiled_hessian_of_det(
    rank: int, backend: str, trace: Callable[[Function], Function]
) -> None:
    dtype = widest(backend)
    x = of_rank(rank)
    got = trace(hessian(linearalg.det))(convert_to_tensor(x, dtype=dtype)).numpy()
    np.testing.assert_allclose(got, expected_hessian(x), atol=2e2 * np.finfo(dtype).eps)


def symmetric(x: EmberTensor) -> EmberTensor:
    return ops.matmul(x, ops.matrix_transpose(x)) + convert_to_tensor(
        np.diag([1.0, 2.5, 4.0]), dtype=x.dtype, backend=x.backend
    )


def cosine(x: EmberTensor) -> EmberTensor:
    return ops.sum(ops.cos(x))


FUNCTIONS: dict[str, Function] = {
    "det": lambda x: ops.sin(linearalg.det(x)),
    "complex det": lambda x: ops.real(linearalg.det(ops.make_complex(x, ops.sin(x))) ** 2),
    "det of det": lambda x: linearalg.det(x * linearalg.det(symmetric(x))),
    "slogdet": lambda x: ops.sin(linearalg.slogdet(x)[1]),
    "inv": lambda x: cosine(linearalg.inv(symmetric(x))),
    "solve": lambda x: cosine(linearalg.solve(symmetric(x), x)),
    "cholesky": lambda x: cosine(linearalg.cholesky(symmetric(x))),
    "eigh": lambda x: cosine(ops.abs(linearalg.eigh(symmetric(x))[1]) * x),
    "eigvalsh": lambda x: cosine(linearalg.eigvalsh(symmetric(x))),
    "svd": lambda x: cosine(ops.abs(linearalg.svd(symmetric(x))[0]) * x),
    "svdvals": lambda x: cosine(linearalg.svdvals(x[:, :2])),
    "qr": lambda x: cosine(linearalg.qr(x)[1] ** 2),
    "pinv": lambda x: cosine(linearalg.pinv(x[:, :2])),
}


def pushed(f: Function) -> Function:
    return lambda x: jvp(f, (x,), (ops.cos(ops.ones_like(x)),))[1]


def mapped(f: Function) -> Function:
    return lambda x: ops.sum(vmap(f)(ops.stack([x, 0.9 * x])))


NESTINGS: dict[str, Callable[[Function], Function]] = {
    "jvp": lambda f: grad(pushed(f)),
    "vmap": lambda f: grad(lambda x: ops.sum(jacobian(mapped(f), mode="forward")(x))),
}
"""Second derivatives, differentiated again by each test."""


def start(singular: bool) -> Any:
    x = np.random.default_rng(5).uniform(0.3, 1.2, (SIZE, SIZE)) + np.diag([1.0, 2.0, 0.5])
    if singular:
        x[2] = x[0] - x[1]
    return x


DIRECTION = np.random.default_rng(6).uniform(-1.0, 1.0, (SIZE, SIZE))


@functools.cache
def by_differences(name: str, nesting: str, singular: bool) -> Any:
    """Return differences of the reference's second derivatives along a direction."""
    with use_backend(REFERENCE), np.errstate(all="ignore"):
        second = NESTINGS[nesting](FUNCTIONS[name])
        ends = [start(singular) + side * 1e-5 * DIRECTION for side in (1, -1)]
        up, down = (second(convert_to_tensor(x, dtype="float64")).numpy() for x in ends)
    return (up - down) / 2e-5


CASES = [(name, False) for name in FUNCTIONS] + [(name, True) for name in ("det", "complex det")]


@pytest.mark.parametrize(("name", "singular"), CASES)
@pytest.mark.parametrize("nesting", NESTINGS)
@pytest.mark.parametrize("backend", with_dtype("float64"), indirect=True)
def test_third_derivatives(name: str, singular: bool, nesting: str, backend: str) -> None:
    want = by_differences(name, nesting, singular)
    assert np.all(np.isfinite(want))
    x = convert_to_tensor(start(singular), dtype="float64")
    table = jacobian(NESTINGS[nesting](FUNCTIONS[name]))(x).numpy()
    got = np.einsum("ijkl,kl->ij", table, DIRECTION)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6 * max(1.0, np.abs(want).max()))
