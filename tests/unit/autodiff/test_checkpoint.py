"""Checkpoints: the same gradients, with less memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from ember_ml import GradientTape, ops, use_backend
from ember_ml.autodiff import checkpoint, grad, hessian, jvp, value_and_grad, vjp, vmap
from ember_ml.nn import Parameter, tensor

pytestmark = pytest.mark.usefixtures("backend")


def block(x, w):
    for _ in range(6):
        x = ops.tanh(ops.exp(-x * x) * w)
    return x


def network(wrap, count=4):
    def loss(x, w):
        for _ in range(count):
            x = wrap(block)(x, w)
        return ops.mean(x)

    return loss


def test_gradients_are_the_same():
    x, w = tensor.array(np.linspace(-1, 1, 12, dtype=np.float32)), tensor.array(0.7)
    plain = grad(network(lambda f: f), argnums=(0, 1))(x, w)
    again = grad(network(checkpoint), argnums=(0, 1))(x, w)
    for one, other in zip(plain, again, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-7)


def test_second_derivatives():
    x = tensor.array(0.3)
    f = lambda x: ops.tanh(ops.exp(x) * x)
    want = grad(grad(f))(x)
    np.testing.assert_allclose(float(grad(grad(checkpoint(f)))(x)), float(want), rtol=1e-5)


def test_gradients_reach_what_the_function_reads_from_elsewhere():
    x = tensor.array([0.5, -0.3])

    def loss(w, wrap):
        return ops.sum(wrap(lambda x: ops.tanh(x * w))(x))

    w = tensor.array([2.0, 3.0])
    want = grad(loss)(w, lambda f: f).numpy()
    np.testing.assert_allclose(grad(loss)(w, checkpoint).numpy(), want, rtol=1e-6)


def test_on_a_tape_with_parameters():
    x, w = tensor.array([0.5, -0.3]), Parameter([2.0, 3.0])

    def gradients(wrap):
        with GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(wrap(lambda x: ops.tanh(x * w) * ops.exp(x))(x) * w)
        return [g.numpy() for g in tape.gradient(y, [x, w])]

    for one, other in zip(gradients(checkpoint), gradients(lambda f: f), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_random_numbers_are_those_of_the_first_run():
    x = tensor.array(np.ones(400, np.float32))
    seen = []

    def noisy(x):
        out = ops.dropout(x * x, 0.5)
        seen.append(out)
        return out

    with GradientTape() as tape:
        tape.watch(x)
        y = checkpoint(noisy)(x)
    kept = y.numpy() > 0
    np.testing.assert_array_equal(tape.gradient(y, x).numpy() > 0, kept)


def test_nests_and_no_gradient_at_all():
    x = tensor.array([1.0, 2.0])
    out = checkpoint(lambda p, k: {"y": p["x"] * k, "k": k})({"x": x}, 3)
    assert out["y"].tolist() == [3.0, 6.0]
    assert out["k"] == 3


def _peak(backend, run):
    """Bytes at the highest point, or that the graph holds."""
    if backend == "numpy":
        tracemalloc.start()
        run()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak
    if backend == "mlx":
        import mlx.core as mx

        mx.synchronize()
        mx.reset_peak_memory()
        run()
        return mx.get_peak_memory()
    import torch

    sizes, now = [0], [0]

    class Held:
        def __init__(self, data):
            self.data = data
            now[0] += data.nbytes
            sizes.append(now[0])

        def __del__(self):
            now[0] -= self.data.nbytes

    with torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.data):
        run()
    return max(sizes)


def test_less_memory(backend):
    x = tensor.array(np.linspace(-1, 1, 200_000, dtype=np.float32))
    w = tensor.array(0.7)

    def measure(wrap):
        differentiate = value_and_grad(network(wrap, count=6), argnums=(0, 1))

        def run():
            value, grads = differentiate(x, w)
            ops.synchronize(value, *grads)

        run()
        return _peak(backend, run)

    plain, again = measure(lambda f: f), measure(checkpoint)
    assert again < 0.75 * plain, f"{again} bytes with checkpoints, {plain} without"


def _curve(x):
    return ops.sum(ops.sin(x) * ops.exp(x) * x)


BODIES = {
    "grad": lambda x: grad(_curve)(x) * x,
    "jvp": lambda x: jvp(_curve, (x,), (x * 2.0,))[1] * x,
    "vjp": lambda x: vjp(_curve, x)[1](ops.sum(x))[0],
    "hessian": lambda x: ops.matmul(hessian(_curve)(x), x),
    "vmap": lambda x: vmap(lambda each: ops.sin(each) * ops.sum(x))(x),
    "grad of grad": lambda x: grad(lambda x: ops.sum(grad(_curve)(x) ** 2))(x),
    "inner checkpoint": lambda x: checkpoint(grad(_curve))(x) * x,
    "tape": lambda x: _taped(_curve)(x) * x,
}


def _taped(fn):
    def gradient(x):
        with GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(fn(x))
        return tape.gradient(y, x)

    return gradient


OUTER = {
    "tape": _taped,
    "tape over tape": lambda fn: _taped(lambda x: _taped(fn)(x) ** 2),
    "grad": lambda fn: grad(lambda x: ops.sum(fn(x))),
    "jvp": lambda fn: lambda x: jvp(fn, (x,), (x,))[1],
    "jvp of tape": lambda fn: lambda x: jvp(_taped(fn), (x,), (x,))[1],
}


@pytest.mark.parametrize("body", BODIES)
def test_a_checkpointed_function_that_calls_transforms(body, backend):
    """The reference is the same function without checkpoint, on NumPy."""
    for outer in OUTER.values():
        with use_backend("numpy"):
            want = outer(BODIES[body])(tensor.array([0.2, 0.6, 1.0])).numpy()
        got = outer(checkpoint(BODIES[body]))(tensor.array([0.2, 0.6, 1.0]))
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-3, atol=1e-3)
