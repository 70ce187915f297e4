"""Function transforms, with one signature on every backend."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ember_ml import GradientTape, ops
from ember_ml.autodiff import (
    custom_gradient,
    grad,
    hessian,
    jacobian,
    jvp,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from ember_ml.nn import Parameter, tensor

pytestmark = pytest.mark.usefixtures("backend")

X = np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], np.float32)
W = np.array([[0.2, -0.4], [0.7, 0.1], [-0.3, 0.9]], np.float32)


def close(got, want, rtol=2e-5):
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=rtol)


def loss(x, w):
    return ops.mean(ops.tanh(ops.matmul(x, w)) ** 2)


def torch_loss(x, w):
    return torch.mean(torch.tanh(x @ w) ** 2)


def torch_gradients(function, *arrays):
    leaves = [torch.tensor(array, requires_grad=True) for array in arrays]
    return [g.numpy() for g in torch.autograd.grad(function(*leaves), leaves)]


def test_value_and_grad():
    x, w = tensor.array(X), tensor.array(W)
    value, g = value_and_grad(loss)(x, w)
    want = torch_gradients(torch_loss, X, W)
    close(value, torch_loss(torch.tensor(X), torch.tensor(W)).numpy())
    close(g, want[0])
    both = grad(loss, argnums=(0, 1))(x, w)
    assert isinstance(both, tuple)
    for one, other in zip(both, want, strict=True):
        close(one, other)
    close(grad(loss, argnums=-1)(x, w), want[1])
    assert g.dtype is tensor.float32


def test_nested_arguments_keywords_and_non_tensors():
    def f(params, scale, *, power):
        return ops.sum(params["w"] ** power) * scale * params["n"]

    params = {"w": tensor.array([1.0, 2.0]), "n": 3, "empty": []}
    g = grad(f)(params, 2.0, power=2)
    assert g["n"] is None
    assert g["empty"] == []
    close(g["w"], [12.0, 24.0])


def test_aux():
    def f(x):
        return ops.sum(x * x), {"double": x * 2.0, "name": "aux"}

    x = tensor.array([1.0, 2.0])
    (value, aux), g = value_and_grad(f, has_aux=True)(x)
    close(value, 5.0)
    close(aux["double"], [2.0, 4.0])
    assert aux["name"] == "aux"
    close(g, [2.0, 4.0])
    g, aux = grad(f, has_aux=True)(x)
    close(aux["double"], [2.0, 4.0])
    assert not getattr(aux["double"].native, "requires_grad", False)


def test_python_numbers_and_unconnected_arguments():
    close(grad(lambda x: x**3)(2.0), 12.0)
    x, y = tensor.array([1.0, 2.0]), tensor.array([3.0])
    g = grad(lambda x, y: ops.sum(x), argnums=(0, 1))(x, y)
    close(g[1], [0.0])


def test_one_tensor_given_twice():
    x = tensor.array(3.0)
    first, second = grad(lambda x, y: x * y * y, argnums=(0, 1))(x, x)
    close(first, 9.0)
    close(second, 18.0)


def test_errors():
    x = tensor.array([1.0, 2.0])
    with pytest.raises(ValueError, match=r"scalar, not a tensor of shape \(2,\); take the sum"):
        grad(lambda x: x * x)(x)
    with pytest.raises(TypeError, match="has_aux=True"):
        grad(lambda x: (ops.sum(x), x))(x)
    with pytest.raises(TypeError, match=r"\(value, aux\)"):
        grad(lambda x: ops.sum(x), has_aux=True)(x)
    with pytest.raises(TypeError, match="real floating-point scalar, not int64"):
        grad(lambda x: ops.argmax(x))(x)
    with pytest.raises(TypeError, match="must contain a floating-point tensor"):
        grad(lambda x: x)(tensor.array([1, 2]))
    with pytest.raises(ValueError, match="argnums=1"):
        grad(lambda x: x, argnums=1)(x)
    with pytest.raises(ValueError, match="structure of the function's result"):
        vjp(lambda x: x, x)[1]([x])
    with pytest.raises(ValueError, match=r"shape \(3,\), but the result has \(2,\)"):
        vjp(lambda x: x, x)[1](ops.ones(3))
    with pytest.raises(ValueError, match="2 tangents for 1 primals"):
        jvp(lambda x: x, (x,), (x, x))
    with pytest.raises(ValueError, match=r"tangent has the shape \(3,\)"):
        jvp(lambda x: x, (x,), (ops.ones(3),))
    with pytest.raises(ValueError, match="mode must be"):
        jacobian(lambda x: x, mode="sideways")
    with pytest.raises(ValueError, match="must have one length"):
        vmap(lambda x, y: x)(x, ops.ones(3))
    with pytest.raises(ValueError, match="2 entries for 1 arguments"):
        vmap(lambda x: x, in_axes=(0, 0))(x)
    with pytest.raises(ValueError, match="selects no tensor"):
        vmap(lambda x: x, in_axes=None)(x)


def test_gradients_of_gradients():
    x = tensor.array(2.0)
    f = lambda x: ops.sin(x) * x**2
    close(grad(grad(f))(x), -4 * math.sin(2) + 8 * math.cos(2) + 2 * math.sin(2))
    close(grad(grad(grad(f)))(x), _third(), 1e-4)
    c = tensor.array(5.0)
    close(grad(lambda a: grad(lambda b: a * b * b)(c))(x), 10.0)


def _third():
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.sin(x) * x**2
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
    return y.item()


def test_vjp():
    x, w = tensor.array(X), tensor.array(W)
    (first, _), pull = vjp(lambda x, w: (ops.matmul(x, w), ops.exp(w)), x, w)
    close(first, X @ W, 1e-4)
    g = np.arange(4, dtype=np.float32).reshape(2, 2)
    ones = ops.ones((3, 2))
    for _ in range(2):  # a pull is used more than once
        gx, gw = pull((tensor.array(g), ones))
        close(gx, g @ W.T, 1e-4)
        close(gw, X.T @ g + np.exp(W), 1e-4)


def test_jvp_of_a_nest():
    x, w = tensor.array(X), tensor.array(W)
    direction = np.ones_like(W) * 0.5
    out, change = jvp(
        lambda x, w: {"y": ops.tanh(ops.matmul(x, w))},
        (x, w),
        (ops.zeros_like(x), tensor.array(direction)),
    )
    y = np.tanh(X @ W)
    close(out["y"], y)
    close(change["y"], (1 - y**2) * (X @ direction), 1e-4)


def test_jvp_through_linear_algebra():
    a = np.array([[2.0, 0.5], [0.3, 1.0]], np.float32)
    v = np.array([[0.1, 0.2], [-0.3, 0.4]], np.float32)
    _, change = jvp(ops.linalg.inv, (tensor.array(a),), (tensor.array(v),))
    inverse = np.linalg.inv(a)
    close(change, -inverse @ v @ inverse, 1e-4)


@pytest.mark.filterwarnings("ignore:vmap computes the examples one by one")
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_jacobian(mode):
    x = tensor.array(X[0])
    got = jacobian(lambda x: ops.stack([ops.sum(x * x), x[0] * x[2]]), mode=mode)(x)
    a, b, c = X[0]
    close(got, [[2 * a, 2 * b, 2 * c], [c, 0, a]])
    several = jacobian(lambda x, w: ops.matmul(x, w), argnums=(0, 1), mode=mode)(
        tensor.array(X), tensor.array(W)
    )
    want = torch.autograd.functional.jacobian(torch.matmul, (torch.tensor(X), torch.tensor(W)))
    for one, other in zip(several, want, strict=True):
        close(one, other.numpy())


def test_hessian():
    f = lambda x: ops.sum(ops.exp(x) * x[0])
    want = torch.autograd.functional.hessian(
        lambda x: torch.sum(torch.exp(x) * x[0]), torch.tensor(X[0])
    )
    close(hessian(f)(tensor.array(X[0])), want.numpy(), 1e-4)


def test_vmap():
    x, w = tensor.array(X), tensor.array(W)
    got = vmap(lambda row, w: ops.tanh(ops.matmul(row, w)), in_axes=(0, None))(x, w)
    close(got, np.tanh(X @ W))
    along = vmap(lambda column: ops.sum(column), in_axes=1)(x)
    close(along, X.sum(0))
    nest = vmap(lambda p: {"sum": p["a"] + p["b"], "neg": -p["a"]}, in_axes=({"a": 0, "b": None},))(
        {"a": x, "b": tensor.array(X[0])}
    )
    close(nest["sum"], X + X[0])
    close(vmap(lambda row: row * 2.0, out_axes=1)(x), (X * 2).T)
    close(vmap(vmap(lambda v: v * v))(x), X * X)


def test_vmap_of_gradients():
    x, w = tensor.array(X), tensor.array(W)
    got = vmap(grad(loss, argnums=1), in_axes=(0, None))(x, w)
    want = np.stack([torch_gradients(torch_loss, row[None], W)[1] for row in X])
    close(got, want)


def test_gradient_of_vmap():
    x = tensor.array(X)
    close(grad(lambda x: ops.sum(vmap(lambda row: row * row[0])(x)))(x), _of_first(X))


def _of_first(x):
    g = np.repeat(x[:, :1], x.shape[1], axis=1)
    g[:, 0] += x.sum(1)
    return g


def test_transforms_under_a_tape():
    x = tensor.array(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = grad(lambda z: z * z * x)(x)  # 2 x^2, and x itself inside
    close(tape.gradient(y, x), 8.0)
    v = tensor.array([1.0, 2.0])
    with GradientTape() as tape:
        tape.watch(v)
        y = ops.sum(vmap(lambda e: e * e * 3.0)(v))
    close(tape.gradient(y, v), [6.0, 12.0])
    with GradientTape() as tape:
        tape.watch(x)
        _, y = jvp(lambda z: z**3, (x,), (tensor.array(1.0),))
    close(tape.gradient(y, x), 12.0)


def test_stop_gradient():
    x = tensor.array(3.0)
    close(grad(lambda x: x * stop_gradient(x))(x), 3.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = stop_gradient(x * x)
    assert tape.gradient(y, x) is None


def test_parameters_are_plain_tensors_to_a_transform():
    w = Parameter([1.0, 2.0])
    close(grad(lambda w: ops.sum(w * w))(w), [2.0, 4.0])


def test_custom_gradient():
    @custom_gradient
    def f(x, y):
        e = ops.exp(x)
        return e * y, lambda g: (g * e * y * 10.0, g * e)

    x, y = tensor.array(1.0), tensor.array(2.0)
    e = math.e
    got = grad(f, argnums=(0, 1))(x, y)
    close(got[0], 20 * e)
    close(got[1], e)
    close(grad(grad(f))(x, y), 20 * e)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch([x, y])
            z = f(x, y)
        g = inner.gradient(z, [x, y])
    close(g[0], 20 * e)
    close(outer.gradient(g[0], x), 20 * e)


def test_custom_gradient_of_the_argument_itself():
    """Straight through: the value is the argument's, the gradient is not."""
    clipped = custom_gradient(lambda x: (x, lambda g: ops.clip(g, -1.0, 1.0)))
    x = tensor.array([1.0, 2.0])
    close(grad(lambda x: ops.sum(clipped(x) * 5.0))(x), [1.0, 1.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = clipped(x) * 5.0
    close(tape.gradient(y, x), [1.0, 1.0])


def test_custom_gradient_of_several_results_and_none():
    f = custom_gradient(lambda x, y: ((x + y, x * y), lambda a, b: (a + b * 100.0, None)))
    x, y = tensor.array(2.0), tensor.array(3.0)
    got = grad(lambda x, y: f(x, y)[0] + f(x, y)[1], argnums=(0, 1))(x, y)
    close(got[0], 101.0)
    close(got[1], 0.0)


def test_custom_gradient_errors():
    x = tensor.array([1.0, 2.0])
    with pytest.raises(TypeError, match=r"must return \(result, function"):
        custom_gradient(lambda x: x)(x)
    with pytest.raises(ValueError, match="2 gradients for 1 floating"):
        grad(lambda x: ops.sum(custom_gradient(lambda x: (x * x, lambda g: (g, g)))(x)))(x)
    with pytest.raises(ValueError, match=r"shape \(3,\), but its argument \(2,\)"):
        grad(lambda x: ops.sum(custom_gradient(lambda x: (x * x, lambda g: ops.ones(3)))(x)))(x)
