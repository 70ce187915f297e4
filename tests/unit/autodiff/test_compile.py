"""Compiled functions and their gradients."""

from __future__ import annotations

import warnings

import mlx.core as mx
import numpy as np
import pytest
import torch

from ember_ml import GradientTape, ops, use_backend
from ember_ml._core import runtime
from ember_ml.autodiff import compile, fallback, grad, jvp, value_and_grad, vmap
from ember_ml.nn import tensor

OPTIONS = {"torch": {"fullgraph": True, "backend": "aot_eager"}}
X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)


def loss(params, x):
    hidden = ops.gelu(ops.matmul(x, params["w"]) + params["b"])
    return ops.mean(ops.log_softmax(ops.layer_norm(hidden), axis=-1) ** 2)


def inputs():
    return {"w": tensor.array(W), "b": tensor.array(W[0])}, tensor.array(X)


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def compiled(fn, backend):
    return compile(fn, **OPTIONS.get(backend, {}))


def check(got, want, rtol=1e-4):
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=rtol, atol=1e-6)


def test_value_and_grad_is_compiled_whole(backend):
    want = value_and_grad(loss)(*inputs())
    f = compiled(value_and_grad(loss), backend)
    for _ in range(2):
        value, grads = f(*inputs())
        check(value, want[0])
        check(grads["w"], want[1]["w"])
        check(grads["b"], want[1]["b"])
    assert bool(f.skipped) == (backend == "numpy")


def test_value_and_grad_in_the_frameworks_own_compilers():
    """torch.compile and mx.compile called by hand, around an Ember function."""
    with use_backend("numpy"):
        value, grads = value_and_grad(loss)(*inputs())

    def native(w, b, x):
        params = {"w": tensor.convert_to_tensor(w), "b": tensor.convert_to_tensor(b)}
        value, grads = value_and_grad(loss)(params, tensor.convert_to_tensor(x))
        return value.native, grads["w"].native, grads["b"].native

    with use_backend("torch"):
        run = torch.compile(native, fullgraph=True, backend="aot_eager")
        for got, want in zip(
            run(*map(torch.tensor, (W, W[0], X))), (value, grads["w"], grads["b"]), strict=True
        ):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-6)
    with use_backend("mlx"):
        for got, want in zip(
            mx.compile(native)(*map(mx.array, (W, W[0], X))),
            (value, grads["w"], grads["b"]),
            strict=True,
        ):
            np.testing.assert_allclose(np.array(got), want.numpy(), rtol=1e-4, atol=1e-6)


def test_gradients_through_a_compiled_function(backend):
    params, x = inputs()
    f = compiled(loss, backend)
    want = grad(loss)(params, x)
    got = grad(f)(params, x)
    check(got["w"], want["w"])
    with GradientTape() as tape:
        tape.watch(params)
        y = f(params, x) * 2.0
    check(tape.gradient(y, params)["w"], want["w"] * 2.0)


def test_structures_and_plain_arguments(backend):
    f = compiled(lambda p, k=2, name="n": {"y": p[0] * k, "name": name, "pair": (p[1], k)}, backend)
    x = tensor.array([1.0, 2.0])
    first = f([x, x + 1.0], name="first")
    assert first["y"].tolist() == [2.0, 4.0]
    assert (first["name"], first["pair"][1]) == ("first", 2)
    assert f([x, x], k=5)["y"].tolist() == [5.0, 10.0]
    assert f.__name__ == "<lambda>"


def test_other_transforms_inside(backend):
    x = tensor.array(X)
    f = compiled(lambda x: vmap(grad(lambda row: ops.sum(row * row * row)))(x), backend)
    check(f(x), x * x * 3.0)


def test_unhashable_arguments(backend):
    if backend == "numpy":
        pytest.skip("NumPy has no compiler")
    with pytest.raises(ValueError, match=r"must be hashable; got \['set'\]"):
        compiled(lambda x, s: x, backend)(tensor.array(1.0), {1, 2})


def test_a_gradient_that_cannot_be_compiled_runs_uncompiled_and_warns_once(monkeypatch):
    native = runtime.load("mlx").autodiff
    compiled = []

    def compile_with_reads(function):
        compiled.append(function)
        return mx.compile(lambda *arrays: function(*arrays) if arrays[0].tolist() else [])

    monkeypatch.setattr(native, "compile", compile_with_reads)
    monkeypatch.setattr(fallback, "_warned", set())
    with use_backend("mlx"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = tensor.array([1.0, 2.0, 17.0])
        for _ in range(10):
            with GradientTape() as tape:
                tape.watch(x)
                y = ops.sum(x * x * 17.0)
            assert tape.gradient(y, x).tolist() == [34.0, 68.0, 578.0]
    assert len(compiled) == 1
    assert ["uncompiled" in str(one.message) for one in caught] == [True]


def _slice_write(x):
    y = ops.exp(x)
    y[1:] = x[:-1] * 2.0
    return ops.sum(ops.sin(y) * x)


def _scanned(x):
    last, states = ops.scan(lambda h, t: (ops.tanh(h * x[0] + t), h), x[0], x)
    return ops.sum(last) + ops.sum(states)


@pytest.mark.parametrize(
    "transform",
    [vmap(grad(_slice_write)), grad(_scanned)],
    ids=["vmap of grad of a slice write", "grad of scan"],
)
def test_transforms_after_an_earlier_compile(transform, backend):
    """A compiler may make the sizes of a function symbolic once it has seen others."""
    for size in (2, 3):
        compiled(lambda x: ops.sum(x * x), backend)(tensor.array(X[:2, :size]))
        x = tensor.array(X[:size, :3])
        check(compiled(transform, backend)(x), transform(x))


def test_a_compiled_jvp_of_jvp(backend):
    def slope(f):
        return lambda x: jvp(f, (x,), (ops.ones_like(x),))[1]

    twice = slope(slope(lambda x: ops.sum(ops.linear_recurrence(ops.sin(x), x, axis=0)[0])))
    x = tensor.array(X)
    check(compiled(twice, backend)(x), twice(x))
