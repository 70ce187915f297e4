"""Nested transforms of custom gradients, of integer operands, at zeros and with empty tensors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ember_ml import GradientTape, ops, use_backend
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import UnsupportedOpError
from ember_ml._core.op import OPS
from ember_ml.autodiff import (
    checkpoint,
    compile,
    custom_gradient,
    grad,
    hessian,
    jacobian,
    jvp,
    vjp,
    vmap,
)
from ember_ml.nn import tensor
from tests.backends import by_rules

pytestmark = [
    pytest.mark.usefixtures("backend"),
    pytest.mark.filterwarnings("ignore:vmap computes the examples one by one"),
]

ROWS = np.array([[0.6, -1.1, 0.9], [1.2, 0.7, -0.5], [-0.9, 1.3, 1.1], [0.3, -0.2, 0.8]])


def close(got, want):
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)


@custom_gradient
def spike(x):
    return ops.astype(x > 0, x.dtype), lambda g: g / (1.0 + ops.abs(x)) ** 2


def test_a_batched_function_keeps_its_custom_gradient():
    x = tensor.array(ROWS, dtype="float32")
    want = ROWS / (1 + np.abs(ROWS)) ** 2 + (ROWS > 0)
    close(grad(lambda x: ops.sum(vmap(lambda row: spike(row) * row)(x)))(x), want)
    close(grad(lambda x: ops.sum(vmap(vmap(lambda z: spike(z) * z))(x)))(x), want)
    close(vmap(grad(lambda row: ops.sum(spike(row) * row)))(x), want)
    got = grad(lambda x: ops.sum(vmap(lambda row: checkpoint(spike)(row) * row)(x)))(x)
    close(got, want)


def test_a_batched_function_that_shares_its_argument_sums_its_gradients():
    x, w = tensor.array(ROWS[0], dtype="float32"), tensor.array(ROWS, dtype="float32")
    scaled = custom_gradient(lambda x, w: (x * w, lambda g: (g * w * 3.0, g * 0.0)))
    total = grad(lambda x: ops.sum(vmap(scaled, in_axes=(None, 0))(x, w)))(x)
    close(total, 3 * ROWS.sum(0))


def test_a_custom_gradient_closes_over_batched_values():
    def scaled(x, w):
        tripled = custom_gradient(lambda y: (y * w, lambda g: g * w * 3.0))
        return ops.sum(tripled(x) * x)

    x, w = (tensor.array(a, dtype="float32") for a in (ROWS, ROWS[::-1].copy()))
    close(vmap(scaled)(x, w), (ROWS**2 * ROWS[::-1]).sum(-1))
    want = 4 * ROWS * ROWS[::-1]
    close(vmap(grad(scaled))(x, w), want)
    close(grad(lambda x: ops.sum(vmap(scaled)(x, w)))(x), want)


def test_second_derivatives_of_a_checkpointed_custom_gradient():
    doubled = custom_gradient(lambda x: (x * x, lambda g: g * x * 4.0))
    x = tensor.array([0.5, 2.0])
    for fn in (doubled, checkpoint(doubled)):

        def total(x, fn=fn):
            return ops.sum(fn(x))

        close(hessian(total)(x), [[4.0, 0.0], [0.0, 4.0]])
        close(hessian(checkpoint(total))(x), [[4.0, 0.0], [0.0, 4.0]])
        close(grad(lambda x, total=total: ops.sum(grad(total)(x)))(x), [4.0, 4.0])


ZEROS = {
    "logcumsumexp": ops.logcumsumexp,
    "cumprod": ops.cumprod,
    "prod": ops.prod,
    "i0": ops.i0,
    "square": lambda x: x**2.0,
    "array power": lambda x: ops.power(x, convert_to_tensor([2.0, 1.0, 2.0, 3.0], x.dtype)),
}


def differences(fn, x, v, step=1e-4):
    """Return the first and second derivative along v, in float64 on NumPy."""
    with use_backend("numpy"):
        values = [fn(tensor.array(x + at * step * v)).numpy() for at in (-1, 0, 1)]
    return (values[2] - values[0]) / (2 * step), (values[2] - 2 * values[1] + values[0]) / step**2


@pytest.mark.parametrize("name", ZEROS)
@pytest.mark.parametrize("start", [[0.0, 2.0, 0.0, 3.0], [1.0, 0.0, 2.0, 3.0], [0.0] * 4])
def test_derivatives_at_zeros(name, start):
    fn, x, v = ZEROS[name], tensor.array(start), tensor.array([1.0, 0.5, -1.0, 2.0])
    first, second = differences(fn, np.array(start), np.array([1.0, 0.5, -1.0, 2.0]))
    np.testing.assert_allclose(jvp(fn, (x,), (v,))[1].numpy(), first, rtol=1e-3, atol=1e-3)
    curvature = grad(lambda x: ops.sum(jvp(fn, (x,), (v,))[1]))(x)
    np.testing.assert_allclose(float(ops.sum(curvature * v)), second.sum(), rtol=1e-2, atol=1e-2)
    matrix = hessian(lambda x: ops.sum(fn(x)))(x)
    np.testing.assert_allclose(float(v @ matrix @ v), second.sum(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("backend", by_rules(), indirect=True)
def test_gradients_of_powers_of_zero(backend):
    x, y = tensor.array([0.0, 0.0, 2.0]), tensor.array([0.0, 1.0, 0.0])
    for product in (vjp(ops.power, x, y)[1](ops.ones(3)), jacobian_diagonals(x, y)):
        close(product[0], [0.0, 1.0, 0.0])
        close(product[1], [0.0, 0.0, np.log(2.0)])
    assert float(grad(lambda x: x**0)(0.0)) == 0.0
    assert float(grad(grad(lambda x: x**1))(0.0)) == 0.0


def jacobian_diagonals(x, y):
    return [
        ops.diagonal(part) for part in jacobian(ops.power, argnums=(0, 1), mode="forward")(x, y)
    ]


@pytest.mark.parametrize("backend", by_rules(), indirect=True)
def test_gradients_of_logcumsumexp_at_minus_infinity(backend):
    x = tensor.array([-np.inf, -np.inf, 0.0, 1.0])
    want = [0.0, 0.0, 1 / (1 + np.e), np.e / (1 + np.e)]
    close(grad(lambda x: ops.logcumsumexp(x)[3])(x), want)
    close(jacobian(ops.logcumsumexp)(x)[3], want)


def test_a_gradient_of_a_tape_over_a_forward_derivative():
    def curvature(x):
        with GradientTape() as tape:
            tape.watch(x)
            slope = jvp(lambda y: ops.sum(y**4), (x,), (ops.ones_like(x),))[1]
        return ops.sum(tape.gradient(slope, x))

    x = tensor.array([1.0, -2.0])
    close(grad(curvature)(x), 24 * np.array([1.0, -2.0]))


def test_tapes_over_hessians_in_a_loop():
    """A tape's gradient is compiled after some runs; an outer transform differentiates it."""
    x = tensor.array([1.0, -2.0])
    for _ in range(12):
        with GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(hessian(lambda z: ops.sum(z**4))(x))
        close(tape.gradient(y, x), 24 * np.array([1.0, -2.0]))
    for _ in range(12):
        with GradientTape() as outer:
            outer.watch(x)
            with GradientTape() as inner:
                inner.watch(x)
                y = ops.sum(x**4)
            g = inner.gradient(y, x)
        close(outer.gradient(g, x), 12 * np.array([1.0, 4.0]))


def test_gradients_of_compiled_functions_in_a_loop():
    options = {"backend": "eager"} if ops.get_backend() == "torch" else {}
    cube = compile(lambda x: ops.sum(x**3), **options)
    x = tensor.array([1.0, -2.0])
    for _ in range(3):
        close(grad(cube)(x), 3 * np.array([1.0, 4.0]))
        close(vmap(grad(lambda z: ops.sum(cube(z))))(ops.stack([x, x])), [[3.0, 12.0]] * 2)
        close(hessian(cube)(x), np.diag([6.0, -12.0]))


INDEXED = {
    "take": lambda x, i: ops.take(x, i),
    "getitem": lambda x, i: x[i],
    "two axes": lambda x, i: ops.outer(x, x)[i, ops.flip(i)],
    "rows": lambda x, i: ops.outer(x, x)[i],
    "columns": lambda x, i: ops.outer(x, x)[:, i],
    "take_along_axis": lambda x, i: ops.take_along_axis(x, i),
    "put_along_axis": lambda x, i: ops.put_along_axis(x, i, x[:2] ** 2),
    "index_update": lambda x, i: ops.index_update(x, (i,), x[0] * x[1]),
    "index_add": lambda x, i: ops.index_add(x, (i,), x[1:] * x[0]),
    "update two axes": lambda x, i: ops.index_update(ops.outer(x, x), (i, i), x[0] * 3.0),
    "segment_sum": lambda x, i: ops.segment_sum(x[:2], i, 3),
    "segment_max": lambda x, i: ops.segment_max(x[:2] * x[2], i, 3),
    "segment_prod": lambda x, i: ops.segment_prod(x[:2] * x[2], i, 3),
    "dynamic_slice": lambda x, i: ops.dynamic_slice(x, i[:1], (2,)),
    "dynamic_update_slice": lambda x, i: ops.dynamic_update_slice(x, x[:2] ** 2, i[:1]),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)], ids=str)
def test_batched_indices(name, axes):
    def total(x, i):
        return ops.sum(ops.sin(INDEXED[name](x, i)))

    x = tensor.array(ROWS if axes[0] == 0 else ROWS[0], dtype="float32")
    i = tensor.array([[0, 1], [2, 1], [1, 0], [2, 0]])
    i = i if axes[1] == 0 else i[1]
    pairs = [
        (x[at] if axes[0] == 0 else x, i[at] if axes[1] == 0 else i) for at in range(len(ROWS))
    ]
    close(vmap(total, axes)(x, i), np.array([float(total(*pair)) for pair in pairs]))
    want = np.stack([grad(total)(*pair).numpy() for pair in pairs])
    close(vmap(grad(total), axes)(x, i), want)
    summed = want if axes[0] == 0 else want.sum(0)
    close(grad(lambda x: ops.sum(vmap(total, axes)(x, i)))(x), summed)


def test_gradients_of_empty_parts():
    x = ops.zeros((3, 2, 0))
    assert grad(lambda x: ops.sum(x[0]))(x).shape == (3, 2, 0)
    signal, weight = ops.zeros((0, 2, 5)), ops.ones((3, 2, 2))

    def convolve(x, w):
        return ops.sum(ops.conv1d(x, w, stride=2))

    assert vmap(grad(convolve, 1), (None, 0))(signal, ops.stack([weight] * 2)).shape == (2, 3, 2, 2)


def test_results_of_integer_and_complex_ops():
    assert ops.argmax(tensor.array(2.0), keepdims=True).tolist() == 0
    assert ops.argmin(tensor.array(2.0), keepdims=True).tolist() == 0
    x = tensor.array([0.5, -1.0, 2.0])

    def product(x):
        return ops.sum(ops.real(ops.cumprod(ops.make_complex(x, x), dtype="complex64")))

    step = 1e-3
    want = [
        float(product(x + step * unit) - product(x - step * unit)) / (2 * step)
        for unit in ops.eye(3)
    ]
    np.testing.assert_allclose(grad(product)(x).numpy(), want, rtol=1e-2, atol=1e-2)


def test_gradients_of_quantiles_in_q():
    x = tensor.array([3.0, 1.0, 2.0, 7.0])
    q = tensor.array([0.2, 0.9])
    want = [3.0, 12.0]  # the distance of the neighbors times 3
    close(grad(lambda q: ops.sum(ops.quantile(x, q)))(q), want)
    close(vmap(grad(lambda q: ops.quantile(x, q)))(q), want)


def test_threads_do_not_disturb_each_other():
    x = tensor.array([1.0, 2.0])

    def work(_):
        curvature = hessian(lambda z: ops.sum(z**3))(x).numpy()
        slopes = vmap(grad(lambda z: ops.sum(z**2)))(ops.stack([x, x])).numpy()
        return curvature.tolist() == [[6.0, 0.0], [0.0, 12.0]] and slopes[1].tolist() == [2.0, 4.0]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))


@pytest.mark.parametrize("backend", by_rules(), indirect=True)
def test_an_op_without_a_derivative_is_named_with_the_transforms(backend, monkeypatch):
    monkeypatch.setattr(OPS["exponential.exp"], "vjps", None)
    x = tensor.array([1.0, 2.0])

    def total(x):
        return ops.sum(ops.exp(x))

    with pytest.raises(UnsupportedOpError, match=r"^jvp: exponential.exp has no gradient"):
        jvp(total, (x,), (x,))
    with pytest.raises(UnsupportedOpError, match=r"^grad: jvp: exponential.exp"):
        grad(lambda x: jvp(total, (x,), (x,))[1])(x)
    with pytest.raises(UnsupportedOpError, match=r"^vmap: vjp: exponential.exp"):
        vmap(lambda x: vjp(total, x)[1](ops.ones(()))[0])(ops.stack([x, x]))
