"""scan, associative_scan, map, cond, while_loop, fori_loop."""

from __future__ import annotations

from typing import NamedTuple

import mlx.core as mx
import numpy as np
import pytest
import torch

from ember_ml import GradientTape, ops, use_backend
from ember_ml.nn import tensor

RNG = np.random.default_rng(0)


class State(NamedTuple):
    h: tensor.Tensor
    count: tensor.Tensor


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def close(got, want, rtol: float = 1e-4) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=1e-5)


def cumulative(c, x):
    return c + x, c + x


# scan


@pytest.mark.parametrize("length", [1, 63, 100])
def test_scan(backend, length):
    x = array(length, 3)
    total, sums = ops.scan(cumulative, ops.zeros((3,)), tensor.array(x))
    close(total, x.sum(0))
    close(sums, x.cumsum(0))


def test_scan_in_reverse_and_along_another_axis(backend):
    x = array(3, 4)
    total, sums = ops.scan(cumulative, ops.zeros((3,)), tensor.array(x), reverse=True, axis=1)
    close(total, x.sum(1))
    close(sums, x[:, ::-1].cumsum(1)[:, ::-1])
    _, sums = ops.scan(cumulative, ops.zeros((3,)), tensor.array(x), axis=-1)
    close(sums, x.cumsum(1))


def test_scan_of_nests(backend):
    def step(state, x):
        h = state.h * x["decay"] + x["input"][0]
        return State(h, state.count + 1), {"h": h, "nothing": None}

    decay, entry = array(5, 2), array(5, 2)
    init = State(ops.zeros((2,)), tensor.array(0))
    xs = {"decay": tensor.array(decay), "input": (tensor.array(entry),)}
    state, ys = ops.scan(step, init, xs)
    assert isinstance(state, State)
    assert state.count.item() == 5
    assert ys["nothing"] is None
    close(ys["h"], ops.linear_recurrence(decay, entry, axis=0)[0].numpy())


def test_scan_without_xs_or_without_ys(backend):
    last, ys = ops.scan(lambda c, _: (c * 2, c), tensor.array(1), length=4)
    assert (last.item(), ys.tolist()) == (16, [1, 2, 4, 8])
    last, ys = ops.scan(lambda c, x: (c + x, None), 0, tensor.array([1, 2, 3]))
    assert (last.item(), ys) == (6, None)


def test_scan_of_nothing(backend):
    step = lambda c, x: (c + ops.sum(x), (x > 0, c))
    last, (flags, sums) = ops.scan(step, tensor.array(2.0), ops.zeros((0, 3)))
    assert last.item() == 2.0
    assert (flags.shape, flags.dtype.name) == ((0, 3), "bool")
    assert (sums.shape, sums.dtype.name) == ((0,), "float32")
    last, ys = ops.scan(cumulative, ops.ones((2,)), ops.zeros((2, 0)), axis=1)
    assert last.tolist() == [1.0, 1.0]
    assert ys.shape == (2, 0)


def test_map(backend):
    x = array(4, 3)
    close(ops.map(lambda row: ops.sum(row * row), tensor.array(x)), (x * x).sum(1))
    pair = ops.map(lambda p: {"s": p[0] + p[1]}, (tensor.array(x), tensor.array(x)))
    close(pair["s"], 2 * x)


# associative_scan


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 63, 100])
def test_associative_scan(backend, length, reverse):
    a, b = np.tanh(array(2, length, 3)), array(2, length, 3)

    def combine(x, y):
        return x[0] * y[0], y[0] * x[1] + y[1]

    _, h = ops.associative_scan(combine, (tensor.array(a), tensor.array(b)), 1, reverse)
    assert h.shape == b.shape
    close(h, ops.linear_recurrence(a, b, reverse=reverse)[0].numpy())


def test_associative_scan_keeps_the_order(backend):
    matrices = array(7, 2, 2)
    found = ops.associative_scan(ops.matmul, tensor.array(matrices))
    want = [matrices[0]]
    for one in matrices[1:]:
        want.append(want[-1] @ one)
    close(found, np.stack(want))


def test_associative_scan_takes_few_calls(backend):
    calls = []
    ops.associative_scan(lambda x, y: calls.append(0) or x + y, ops.ones((1024,)))
    assert len(calls) <= 20


# cond


def test_cond_calls_only_one(backend):
    fail = lambda *_: pytest.fail("the other branch")
    x = tensor.array([1.0, 2.0])
    assert ops.cond(ops.sum(x) > 0, lambda x, y: x + y, fail, x, 1.0).tolist() == [2.0, 3.0]
    assert ops.cond(False, fail, lambda x: {"x": x}, x)["x"] is x
    assert ops.cond(tensor.array([[0]]), fail, lambda: 3) == 3


def newton(x):
    """Return the square root, by a loop whose number of steps depends on x."""
    start = (ops.ones_like(x), tensor.array(1.0))
    body = lambda state: (0.5 * (state[0] + x / state[0]), ops.max(ops.abs(state[0] ** 2 - x)))
    return ops.while_loop(lambda state: state[1] > 1e-3, body, start, max_iterations=8)[0]


def branches(x):
    return ops.cond(
        ops.sum(x) > 0, lambda x: {"y": ops.exp(x)}, lambda x: {"y": ops.negative(x)}, x
    )["y"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cond_in_torch_compile(sign):
    torch._dynamo.reset()
    x = torch.tensor([0.5, 2.0]) * sign
    with use_backend("torch"):
        tensor.array(0.0)
        function = lambda x: branches(tensor.convert_to_tensor(x)).native
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), function(x))
        torch.testing.assert_close(compiled(-x), function(-x))
        batch = torch.stack([x, -x])
        want = torch.stack([function(x), function(-x)])
        torch.testing.assert_close(torch.func.vmap(function)(batch), want)


def test_cond_in_mlx_compile():
    x = mx.array([0.5, 2.0])
    with use_backend("mlx"):
        function = lambda x: branches(tensor.convert_to_tensor(x)).native
        for compiled in (mx.compile(function), lambda x: mx.vmap(function)(x[None])[0]):
            for one in (x, -x):
                np.testing.assert_allclose(compiled(one), function(one), rtol=1e-6)


def test_branches_must_agree():
    pairs = {
        "structure": (lambda x: (x, x), lambda x: [x, x]),
        r"shape at \['y'\]": (lambda x: {"y": x}, lambda x: {"y": ops.sum(x)}),
        "dtype": (lambda x: x, lambda x: ops.astype(x, "float16")),
    }
    with use_backend("mlx"):
        for message, (first, second) in pairs.items():

            def function(x, first=first, second=second):
                x = tensor.convert_to_tensor(x)
                ops.cond(x[0] > 0, first, second, x)
                return x.native

            with pytest.raises(
                (TypeError, ValueError), match=f"cond: .*must have the same {message}"
            ):
                mx.compile(function)(mx.ones(2))


# loops


def test_while_loop(backend):
    assert ops.while_loop(lambda x: x < 100, lambda x: x * 2, 3).item() == 192
    assert ops.while_loop(lambda x: True, lambda x: x + 1, 0, max_iterations=5).item() == 5
    assert ops.while_loop(lambda x: x < 0, lambda x: x + 1, 7).item() == 7
    close(newton(tensor.array([4.0, 9.0])), [2.0, 3.0], rtol=1e-3)


def test_while_loop_in_torch_compile():
    torch._dynamo.reset()
    x = torch.tensor([4.0, 9.0], requires_grad=True)
    with use_backend("torch"):
        tensor.array(0.0)
        function = lambda x: newton(tensor.convert_to_tensor(x)).native
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), function(x))
        (got,) = torch.autograd.grad(compiled(x).sum(), x)
        torch.testing.assert_close(got, torch.tensor([0.25, 1 / 6]), rtol=1e-3, atol=1e-3)


def test_while_loop_in_mlx_compile():
    x = mx.array([4.0, 9.0])
    with use_backend("mlx"):
        function = lambda x: newton(tensor.convert_to_tensor(x)).native
        np.testing.assert_allclose(mx.compile(function)(x), function(x), rtol=1e-5)
        endless = lambda x: (
            ops.while_loop(lambda x: x < 9, lambda x: x + 1, tensor.convert_to_tensor(x)).native
        )
        with pytest.raises(ValueError, match="pass max_iterations"):
            mx.compile(endless)(mx.array(1.0))


def test_fori_loop(backend):
    assert ops.fori_loop(1, 5, lambda i, x: x * i, 1).item() == 24
    assert ops.fori_loop(3, 3, lambda i, x: x * i, 1).item() == 1
    assert ops.fori_loop(0, tensor.array(3), lambda i, x: x + i, tensor.array(0)).item() == 3


def test_fori_loop_of_a_traced_bound():
    with use_backend("mlx"):
        function = lambda n: (
            ops.fori_loop(0, tensor.convert_to_tensor(n), lambda i, x: x, tensor.array(0)).native
        )
        with pytest.raises(ValueError, match="upper has no value while the function is traced"):
            mx.compile(function)(mx.array(3))


# gradients and compilers


def recurrent(x, weight):
    def step(h, entry):
        h = ops.tanh(ops.matmul(h, weight) + entry)
        return h, h * 2.0

    last, ys = ops.scan(step, ops.zeros_like(x[0]), x)
    return ops.sum(last) + ops.sum(ys * ys)


def composed(x, weight):
    """Return a scalar computed with every control flow op."""
    pair = lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1])
    h = ops.associative_scan(pair, (ops.sigmoid(x), x))[1]
    z = ops.cond(True, ops.sin, ops.cos, h)
    z = ops.fori_loop(0, 3, lambda i, z: z * 0.5 + i * ops.sum(weight), z)
    z = ops.while_loop(lambda z: ops.sum(z * z) < 1e4, lambda z: z * 2.0, z, max_iterations=12)
    return ops.sum(ops.map(lambda row: ops.sum(row**2), z)) * 1e-3


def torch_gradients(function, arrays):
    with use_backend("torch"):
        leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
        return torch.autograd.grad(
            function(*[tensor.convert_to_tensor(x) for x in leaves]).native, leaves
        )


@pytest.mark.parametrize("function", [recurrent, composed])
def test_gradients(backend, function):
    arrays = array(6, 2, 3) * 0.5, array(3, 3) * 0.5
    want = torch_gradients(function, arrays)
    sources = [tensor.array(x) for x in arrays]
    with GradientTape() as tape:
        tape.watch(sources)
        loss = function(*sources)
    for got, one in zip(tape.gradient(loss, sources), want, strict=True):
        close(got, one.numpy(), rtol=1e-3)


@pytest.mark.parametrize("function", [recurrent, composed])
def test_torch_compile(function):
    torch._dynamo.reset()
    arrays = array(6, 2, 3) * 0.5, array(3, 3) * 0.5
    leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
    with use_backend("torch"):
        tensor.array(0.0)
        native = lambda *given: function(*[tensor.convert_to_tensor(x) for x in given]).native
        compiled = torch.compile(native, fullgraph=True, backend="aot_eager")
        found = torch.autograd.grad(compiled(*leaves), leaves)
    for got, want in zip(found, torch_gradients(function, arrays), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("function", [recurrent, composed])
def test_mlx_compile(function):
    arrays = array(6, 2, 3) * 0.5, array(3, 3) * 0.5
    with use_backend("mlx"):
        native = lambda *given: function(*[tensor.convert_to_tensor(x) for x in given]).native
        found = mx.compile(mx.grad(native, argnums=(0, 1)))(*map(mx.array, arrays))
    for got, want in zip(found, torch_gradients(function, arrays), strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=1e-4)


# errors

BAD = {
    "no pair": (lambda: ops.scan(lambda c, x: c, 0.0, ops.ones((2,))), "f must return a pair"),
    "carry's structure": (
        lambda: ops.scan(lambda c, x: ((c, c), x), 0.0, ops.ones((2,))),
        "the carry and the result of f must have the same structure",
    ),
    "carry's shape": (
        lambda: ops.scan(lambda c, x: ({"h": c["h"] + x}, x), {"h": 0.0}, ops.ones((2, 3))),
        r"must have the same shape at \['h'\]; got \(\) and \(3,\)",
    ),
    "carry's dtype": (
        lambda: ops.fori_loop(0, 2, lambda i, x: x * 0.5, 1),
        r"must have the same dtype.*int64.*float32.*astype\('int64'\)",
    ),
    "body's shape": (
        lambda: ops.while_loop(lambda x: True, lambda x: ops.stack([x, x]), 1.0),
        "while_loop: the carry and the result of body_fn must have the same shape",
    ),
    "ys": (
        lambda: ops.scan(lambda c, x: (c + 1, (c,) if c.item() else c), 0, length=2),
        "the first y of f and a later one must have the same structure",
    ),
    "lengths": (
        lambda: ops.scan(lambda c, x: (c, None), 0, (ops.ones((2,)), ops.ones((3,)))),
        r"lengths along axis 0 must be equal; got 2 \(tensor 0.*3 \(tensor 1",
    ),
    "length": (
        lambda: ops.scan(cumulative, 0.0, ops.ones((2,)), length=3),
        r"3 \(length\), 2 \(tensor",
    ),
    "no length": (lambda: ops.scan(lambda c, x: (c, None), 0), "pass xs or length"),
    "axis": (lambda: ops.scan(cumulative, 0.0, ops.ones((2,)), axis=1), "scan: axis"),
    "combined": (
        lambda: ops.associative_scan(lambda x, y: ops.sum(x), ops.ones((4,))),
        "an operand of f and its result must have the same shape",
    ),
    "predicate": (lambda: ops.cond(ops.ones((2,)), ops.sin, ops.cos), "pred has shape"),
    "condition": (
        lambda: ops.while_loop(lambda x: x > 0, lambda x: x, ops.ones((2,))),
        "the result of cond_fn has shape",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(backend, name):
    call, message = BAD[name]
    with pytest.raises((TypeError, ValueError), match=message):
        call()
