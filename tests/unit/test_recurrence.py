"""linear_recurrence: its kernels against its body, its gradients, compilers and transforms."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
import torch

from ember_ml import GradientTape, autodiff, ops, use_backend
from ember_ml._core.dispatch import OPS
from ember_ml.backend.torch.ops import recurrence as torch_kernels
from ember_ml.nn import tensor

REFERENCE = OPS["recurrence.linear_recurrence"].body
LENGTHS = (1, 63, 100)
CUTS = (2, 16, 17, 24, 25, 31, 32, 48, 65, 513, 1000)


def operands(length: int, seed: int = 0, features: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = (2, length, 1), (2, length, features), (2, features)
    a, b, h0 = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return [np.tanh(a), b, h0]


def loop(a, b, h0=None, axis=1, reverse=False):
    a, b = (np.moveaxis(x.astype(np.float64), axis, 0) for x in np.broadcast_arrays(a, b))
    state = np.zeros_like(b[0]) if h0 is None else np.broadcast_to(h0, b[0].shape)
    h = np.empty_like(b)
    for at in range(len(b))[:: -1 if reverse else 1]:
        h[at] = state = a[at] * state + b[at]
    return np.moveaxis(h, 0, axis), state


def gradients(function, arrays, cotangents, **options):
    sources = [tensor.array(array) for array in arrays]
    with GradientTape() as tape:
        tape.watch(sources)
        outs = function(*sources, **options)
    return outs, tape.gradient(outs, sources, [tensor.array(g) for g in cotangents])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_kernel_equals_the_body(backend, length, reverse):
    arrays = operands(length)
    cotangents = operands(length, seed=1)[1:]
    found = gradients(ops.linear_recurrence, arrays, cotangents, reverse=reverse)
    wanted = gradients(REFERENCE, arrays, cotangents, reverse=reverse)
    for got, want in zip((*found[0], *found[1]), (*wanted[0], *wanted[1]), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", CUTS)
def test_where_time_is_cut(backend, length, reverse):
    a, b, h0 = operands(length)
    for axis, order in ((1, (0, 1, 2)), (0, (1, 0, 2)), (2, (0, 2, 1))):
        factors, entries = (tensor.array(np.ascontiguousarray(x.transpose(order))) for x in (a, b))
        h, final = ops.linear_recurrence(factors, entries, tensor.array(h0), axis, reverse)
        want, last = loop(a, b, h0, reverse=reverse)
        np.testing.assert_allclose(h.numpy(), want.transpose(order), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(final.numpy(), last, rtol=1e-4, atol=1e-5)


def test_wide_steps(backend):
    a, b, _ = operands(30, features=40_000)
    h, final = ops.linear_recurrence(tensor.array(a), tensor.array(b))
    want, last = loop(a, b)
    np.testing.assert_allclose(h.numpy(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(final.numpy(), last, rtol=1e-4, atol=1e-5)


def test_products_that_vanish_do_no_harm(backend):
    a = np.full((1, 600, 2), 1e-3, np.float32)
    a[:, 300] = 0.0
    arrays, cotangents = [a, operands(600)[1][:1, :, :2]], operands(600, seed=1)[1:]
    cotangents = [cotangents[0][:1, :, :2], cotangents[1][:1, :2]]
    outs, grads = gradients(ops.linear_recurrence, arrays, cotangents)
    np.testing.assert_allclose(outs[0].numpy(), loop(*arrays)[0], rtol=1e-5, atol=1e-6)
    assert all(np.isfinite(g.numpy()).all() for g in grads)


def test_only_one_result_is_used(backend):
    arrays = [tensor.array(x) for x in operands(40)]
    for at in (0, 1):
        found = []
        for function in (ops.linear_recurrence, REFERENCE):
            with GradientTape() as tape:
                tape.watch(arrays)
                loss = ops.sum(function(*arrays)[at])
            found.append(tape.gradient(loss, arrays))
        for got, want in zip(*found, strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-4, atol=2e-5)


def test_empty_time(backend):
    h, final = ops.linear_recurrence(ops.zeros((2, 0, 3)), ops.zeros((2, 0, 3)), ops.ones((3,)))
    assert h.shape == (2, 0, 3)
    assert final.tolist() == [[1.0] * 3] * 2


def test_a_number_as_factor(backend):
    h, final = ops.linear_recurrence(0.5, tensor.array([1.0, 1.0, 1.0]), axis=0)
    assert h.tolist() == [1.0, 1.5, 1.75]
    assert final.item() == 1.75


def test_operands_and_results_share_no_memory(backend):
    a, b, h0 = (tensor.array(x) for x in operands(4))
    before = [x.numpy().copy() for x in (a, b, h0)]
    h, final = ops.linear_recurrence(a, b, h0)
    h[:] = 0.0
    assert final.numpy().any()
    for x, old in zip((a, b, h0), before, strict=True):
        np.testing.assert_array_equal(x.numpy(), old)


BAD = {
    "axis": (lambda: ops.linear_recurrence(ops.ones((3,)), ops.ones((3,))), "axis=1 is out of"),
    "shapes": (
        lambda: ops.linear_recurrence(ops.ones((2, 3, 4)), ops.ones((2, 3, 5))),
        r"\(2, 3, 4\) of a and \(2, 3, 5\) of b",
    ),
    "state": (
        lambda: ops.linear_recurrence(ops.ones((2, 3)), ops.ones((2, 3)), ops.ones((3,))),
        r"h0 of shape \(3,\) does not broadcast to \(2,\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(backend, name):
    call, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        call()


def native(*arrays, **options):
    return tuple(
        x.native for x in ops.linear_recurrence(*map(tensor.convert_to_tensor, arrays), **options)
    )


def doubles(length: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, length, 2, generator=rng, dtype=dtype) * 0.5 for _ in range(2))
    return [x.requires_grad_() for x in (a, b, torch.randn(2, 2, generator=rng, dtype=dtype))]


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in jvp
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 30])
def test_torch_derivatives(length, reverse, dtype):
    with use_backend("torch"):
        call = lambda *arrays: native(*arrays, reverse=reverse)
        arrays = doubles(length, dtype)
        assert torch.autograd.gradcheck(
            call,
            arrays,
            check_forward_ad=True,
            check_batched_grad=True,
            check_backward_ad=True,
            fast_mode=True,
        )
        assert torch.autograd.gradgradcheck(call, arrays, fast_mode=True)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in jvp
def test_torch_function_transforms():
    arrays = [x.detach() for x in doubles(26)]
    with use_backend("torch"):
        loss = lambda *given: sum((x**2).sum() for x in native(*given))
        hessian = torch.func.hessian(loss, argnums=(0, 1))(*arrays)
        (_, again), _ = torch.autograd.functional.hessian(
            lambda a, b: loss(a, b, arrays[2]), tuple(arrays[:2])
        )
        torch.testing.assert_close(hessian[0][1], again)
        one = arrays[0][0]
        many = torch.stack([arrays[1][0], arrays[1][1]], 2)
        h, final = torch.func.vmap(lambda a, b, h0: native(a, b, h0, axis=0), in_dims=(None, 2, 0))(
            one, many, arrays[2]
        )
        want = torch.stack([native(one, many[..., at], arrays[2][at], axis=0)[0] for at in (0, 1)])
        torch.testing.assert_close(h, want)
        assert final.shape == (2, 2)


def test_torch_compile():
    torch._dynamo.reset()
    arrays = [torch.tensor(x, requires_grad=True) for x in operands(100)]

    def loss(a, b, h0):
        h, final = native(torch.sigmoid(a), b, h0, reverse=True)
        return (h * h).sum() + final.sum()

    with use_backend("torch"):
        tensor.array(0.0)
        plain = torch.autograd.grad(loss(*arrays), arrays)
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        traced = torch.autograd.grad(compiled(*arrays), arrays)
    for one, other in zip(plain, traced, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_torch_compiles_to_one_op():
    torch.library.opcheck(
        torch_kernels._opaque, (*[x.detach().requires_grad_() for x in doubles(30)], 1, False)
    )


def test_mlx_transforms():
    arrays = [mx.array(x) for x in operands(40)]
    with use_backend("mlx"):
        loss = lambda *given: sum(mx.square(x).sum() for x in native(*given))
        compiled = mx.compile(mx.grad(loss, argnums=(0, 1, 2)))(*arrays)
        for got, want in zip(compiled, mx.grad(loss, argnums=(0, 1, 2))(*arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        tangents = [mx.array(x) for x in operands(40, seed=1)]
        (change,) = mx.jvp(loss, arrays, tangents)[1]
        slopes = sum(mx.sum(g * v) for g, v in zip(compiled, tangents, strict=True))
        np.testing.assert_allclose(change, slopes, rtol=1e-3)
        many = mx.vmap(lambda a, b: native(a, b, axis=0)[0], in_axes=(0, None))
        h = many(arrays[0], arrays[1][0])
        np.testing.assert_allclose(
            h[1], native(arrays[0][1], arrays[1][0], axis=0)[0], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("reverse", [False, True])
def test_compiled_gradients(reverse: bool) -> None:
    """Also where the compiler itself takes the gradient."""
    with use_backend("torch"):
        a = ops.random.uniform((2, 9, 3), 0.1, 0.9, seed=0)
        b, h0 = ops.random.normal((2, 9, 3), seed=1), ops.random.normal((2, 3), seed=2)

        def loss(a, b, h0):
            h, last = ops.linear_recurrence(a, b, h0, reverse=reverse)
            return (h**2).sum() + (3.0 * last).sum()

        both = autodiff.value_and_grad(loss, (0, 1, 2))
        value, grads = autodiff.compile(both, backend="aot_eager", fullgraph=True)(a, b, h0)
        expected_value, expected = both(a, b, h0)
    assert abs(float(value) - float(expected_value)) < 1e-4
    for found, wanted in zip(grads, expected, strict=True):
        assert float(abs(found - wanted).max()) < 1e-5
