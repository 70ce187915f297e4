"""Nested transforms of single ops, on every backend, against finite differences of NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from ember_ml import GradientTape, ops, use_backend
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor as Tensor
from ember_ml.autodiff import (
    checkpoint,
    grad,
    hessian,
    jacobian,
    jvp,
    vjp,
    vmap,
)
from ember_ml.nn import tensor

Function = Callable[[Tensor], Tensor]
STEP = 1e-4
ROWS = np.array([[0.6, -1.1, 0.9, 1.4], [1.2, 0.7, -0.5, 0.8], [-0.9, 1.3, 1.1, -0.6]])


def weighted(y: Tensor) -> Tensor:
    """Return a scalar that depends on each element differently."""
    y = ops.reshape(y, (-1,))
    return ops.sum(ops.sin(y) * ops.astype(ops.arange(1, y.size + 1), y.dtype))


def write_slice(x: Tensor) -> Tensor:
    y = ops.concat([x, x * x])
    y[2:6] = x * y[0]
    y[1] = x[0] * x[3]
    return weighted(y)


def write_constant(x: Tensor) -> Tensor:
    y = x * x
    y[1:3] = 0.5
    return weighted(y * x[1])


def update(x: Tensor) -> Tensor:
    return weighted(ops.index_update(x * x, (slice(1, 3),), x[:2] * 2.0))


def update_slice(x: Tensor) -> Tensor:
    return weighted(ops.dynamic_update_slice(x, x[:2] ** 2, tensor.array([1])) * x)


def add_at(x: Tensor) -> Tensor:
    return weighted(ops.index_add(x * x, ([0, 0, 2],), x[1:] * x[0]))


def gather_pairs(x: Tensor) -> Tensor:
    square = ops.outer(x, x * x)
    return weighted(square[[0, 2, 2], [3, 1, 1]]) + weighted(square[1:, [0, 3]])


def take_along(x: Tensor) -> Tensor:
    order = ops.argsort(x * x)
    return weighted(ops.take_along_axis(x**3, order) * ops.sort(x))


def nearest(x: Tensor) -> Tensor:
    return weighted(ops.interpolate(ops.reshape(x * x, (1, 1, 4)), size=7) ** 2)


def strided(x: Tensor) -> Tensor:
    """Convolve with windows that leave a rest: 9 = 2 + 3 * 2 + 1."""
    signal = ops.reshape(ops.concat([x, x**2, x[:1]]), (1, 1, 9))
    return weighted(ops.conv1d(signal, ops.reshape(x[:2], (1, 1, 2)), stride=3))


def strided_2d(x: Tensor) -> Tensor:
    image = ops.reshape(ops.outer(ops.concat([x, x[:1]]), ops.concat([x, x**2])), (1, 1, 5, 8))
    kernel = ops.reshape(x, (1, 1, 2, 2))
    return weighted(ops.conv2d(image, kernel, stride=(2, 3), padding=(0, 1)))


def odd_fft(x: Tensor) -> Tensor:
    return weighted(ops.fft.irfft(ops.fft.rfft(x * x, n=5) * 1.5, n=5))


def fft_filter(x: Tensor) -> Tensor:
    spectrum = ops.fft.fft(x) * ops.fft.fft(x * x)
    return weighted(ops.real(ops.fft.ifft(spectrum)))


def scans(x: Tensor) -> Tensor:
    return weighted(ops.logcumsumexp(x)) + weighted(ops.cumprod(x)) + ops.prod(x) * x[0]


def bessel(x: Tensor) -> Tensor:
    return weighted(ops.i0(x))


def quantiles(x: Tensor) -> Tensor:
    return weighted(ops.quantile(x * x, ops.sigmoid(x[:2])))


def eigenvalues(x: Tensor) -> Tensor:
    return weighted(ops.linearalg.eigvalsh(ops.outer(x, x) + ops.diag(ops.exp(x))))


def determinant(x: Tensor) -> Tensor:
    return ops.linearalg.det(ops.outer(x, x * x) + ops.diag(ops.exp(x)))


def powers(x: Tensor) -> Tensor:
    return weighted(ops.power(x * x, x)) + weighted(x**3)


def checkpointed(x: Tensor) -> Tensor:
    return weighted(checkpoint(lambda y: ops.tanh(y) * y[0])(x * x))


FUNCTIONS = (
    *(write_slice, write_constant, update, update_slice, add_at, gather_pairs, take_along),
    *(nearest, strided, strided_2d, odd_fft, fft_filter, scans, bessel, quantiles),
    *(eigenvalues, determinant, powers, checkpointed),
)


def direction(x: Tensor) -> Tensor:
    return convert_to_tensor([0.3, -0.8, 1.0, 0.5], dtype=x.dtype, backend=x.backend)


def slope(fn: Function) -> Function:
    return lambda x: jvp(fn, (x,), (direction(x),))[1]


def on_tape(fn: Function) -> Function:
    """Return the function that computes the gradient on a tape."""

    def gradient(x: Tensor) -> Tensor:
        with GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    return gradient


def rows(derivative: Function) -> Function:
    """Return the derivative applied to each row."""
    return lambda x: ops.stack([derivative(x[at]) for at in range(x.shape[0])])


def first(fn: Function, x: np.ndarray) -> np.ndarray:
    """Return the gradients of the rows, by central differences in float64."""
    with use_backend("numpy"):
        sides = [
            [[float(fn(tensor.array(row + at * unit))) for unit in np.eye(4)] for row in x]
            for at in (STEP, -STEP)
        ]
    return (np.array(sides[0]) - np.array(sides[1])) / (2 * STEP)


def second(fn: Function, x: np.ndarray) -> np.ndarray:
    """Return the Hessians of the rows, by central differences of NumPy's gradients."""
    with use_backend("numpy"):
        sides = [
            [[grad(fn)(tensor.array(row + at * unit)).numpy() for unit in np.eye(4)] for row in x]
            for at in (STEP, -STEP)
        ]
    return (np.array(sides[0]) - np.array(sides[1])) / (2 * STEP)


FIRST: dict[str, Callable[[Function], Function]] = {
    "vmap(grad)": lambda fn: vmap(grad(fn)),
    "grad(vmap)": lambda fn: grad(lambda x: ops.sum(vmap(fn)(x))),
    "jacobian(vmap)": lambda fn: lambda x: ops.sum(jacobian(vmap(fn))(x), axis=0),
    "vmap(tape)": lambda fn: vmap(on_tape(fn)),
    "vmap(vjp)": lambda fn: vmap(lambda x: vjp(fn, x)[1](ops.ones_like(fn(x)))[0]),
}
SECOND: dict[str, Callable[[Function], Function]] = {
    "hessian": lambda fn: rows(hessian(fn)),
    "jacobian(grad)": lambda fn: rows(jacobian(grad(fn))),
    "vmap(hessian)": lambda fn: vmap(hessian(fn)),
    "jacobian forward(grad)": lambda fn: rows(jacobian(grad(fn), mode="forward")),
}
ALONG: dict[str, Callable[[Function], Function]] = {
    "grad(jvp)": lambda fn: rows(grad(slope(fn))),
    "jvp(grad)": lambda fn: rows(slope(grad(fn))),
    "vmap(grad(jvp))": lambda fn: vmap(grad(slope(fn))),
    "vmap(jvp(grad))": lambda fn: vmap(slope(grad(fn))),
    "tape(jvp)": lambda fn: rows(on_tape(slope(fn))),
    "grad(grad)": lambda fn: rows(grad(lambda x: ops.sum(grad(fn)(x) * direction(x)))),
    "grad(tape)": lambda fn: rows(grad(lambda x: ops.sum(on_tape(fn)(x) * direction(x)))),
    "tape(tape)": lambda fn: rows(on_tape(lambda x: ops.sum(on_tape(fn)(x) * direction(x)))),
    "grad(vmap(grad))": lambda fn: grad(lambda x: ops.sum(vmap(grad(fn))(x) @ direction(x))),
}


def evaluate(make: Callable[[Function], Function], fn: Function) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap computes the examples one by one")
        warnings.filterwarnings("ignore", "There is a performance drop")
        return make(fn)(convert_to_tensor(ROWS, dtype="float32")).numpy()


def compare(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * max(1.0, np.abs(want).max()))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_first_derivatives(fn: Function) -> None:
    want = first(fn, ROWS)
    for make in FIRST.values():
        compare(evaluate(make, fn), want)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_second_derivatives(fn: Function) -> None:
    want = second(fn, ROWS)
    for make in SECOND.values():
        compare(evaluate(make, fn), want)
    along = want @ np.array([0.3, -0.8, 1.0, 0.5])
    for make in ALONG.values():
        compare(evaluate(make, fn), along)
