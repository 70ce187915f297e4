"""Writes to repeated indices: the last value is kept, and it alone has a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad, hessian, jvp, vmap
from ember_ml.nn import tensor

STEP = 1e-6
CASES: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...]]] = {
    "list": ((3,), [0, 0], (2,)),
    "negative": ((3,), np.array([0, 1, -3]), (3,)),
    "rows": ((3, 4), [1, 1], (2, 4)),
    "columns": ((3, 4), (slice(None), [1, 1, 2]), (3, 3)),
    "two axes": ((3, 4), ([0, 0, 1], [1, 1, 2]), (3,)),
    "matrix of indices": ((3, 4), ([[0], [0]], [1, 2, 1]), (2, 3)),
    "separated axes": ((3, 4, 2), ([0, 0], slice(None), [1, 1]), (2, 4)),
    "integer and array": ((2, 3, 4), (1, [0, 0, 2]), (3, 4)),
    "mask and array": ((3, 4), (np.array([True, False, False]), [2, 2]), (2,)),
    "mask": ((3, 4), np.array([True, False, True]), (2, 4)),
    "negative step": ((3, 4), (slice(None, None, -1), [1, 1, 3]), (3, 3)),
    "broadcast value": ((3, 4), ([1, 1],), (4,)),
    "scalar value": ((3, 4), ([1, 1, 0],), ()),
}


def drawn(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def slopes(f: Any, x: Any) -> Any:
    """Return the gradient by central differences."""
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[at] = STEP
        out[at] = (f(x + step) - f(x - step)) / (2 * STEP)
    return out


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("name", CASES)
def test_gradient_of_a_write(name: str) -> None:
    shape, key, value_shape = CASES[name]
    x, v, w = drawn(shape, value_shape, shape)

    def f(x: EmberTensor, v: EmberTensor) -> EmberTensor:
        y = x * 1.0
        y[key] = v
        return ops.sum(ops.sin(y) * tensor.array(w))

    def reference(x: Any, v: Any) -> Any:
        y = np.array(x, dtype=np.float64)
        y[key] = v
        return np.sum(np.sin(y) * w)

    given = tensor.array(x), tensor.array(v)
    wide = x.astype(np.float64), v.astype(np.float64)
    want = (
        slopes(lambda x: reference(x, wide[1]), wide[0]),
        slopes(lambda v: reference(wide[0], v), wide[1]),
    )
    with GradientTape() as tape:
        tape.watch(given)
        y = f(*given)
    np.testing.assert_allclose(y.numpy(), reference(*wide), atol=1e-4)
    direction = np.ones(value_shape, np.float32)
    curvature = hessian(f, argnums=1)(*given).numpy().sum()
    for dx, dv in (grad(f, argnums=(0, 1))(*given), tape.gradient(y, given)):
        np.testing.assert_allclose(dx.numpy(), want[0], atol=1e-5)
        np.testing.assert_allclose(dv.numpy(), want[1], atol=1e-5)
    pushed = jvp(lambda v: f(given[0], v), (given[1],), (tensor.array(direction),))[1]
    np.testing.assert_allclose(pushed.numpy(), want[1].sum(), atol=1e-4)
    second = slopes(
        lambda t: slopes(lambda v: reference(wide[0], v), wide[1] + t).sum(), np.zeros(())
    )
    np.testing.assert_allclose(curvature, second, atol=1e-2)


@pytest.mark.usefixtures("backend")
def test_indices_of_each_example() -> None:
    x, v, w = drawn((4, 3), (4, 2), (3,))
    places = np.array([[0, 0], [1, 0], [2, 2], [0, 2]])

    def f(x: EmberTensor, v: EmberTensor, at: EmberTensor) -> EmberTensor:
        y = x * 1.0
        y[at] = v
        return ops.sum(ops.sin(y) * tensor.array(w))

    given = tensor.array(x), tensor.array(v), tensor.array(places)
    got = vmap(grad(f, argnums=1))(*given).numpy()
    last = np.array([[False, True], [True, True], [False, True], [True, True]])
    np.testing.assert_allclose(got, np.where(last, np.cos(v) * w[places], 0.0), atol=1e-5)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("axis", [0, 1])
def test_put_along_axis(axis: int) -> None:
    indices = np.array([[0, 1, 0], [0, 2, 2]])
    x, v, w = drawn((3, 3), (2, 3), (3, 3))
    indices, v = (indices, v) if axis == 0 else (indices.T, v.T)

    def f(x: EmberTensor, v: EmberTensor) -> EmberTensor:
        y = ops.put_along_axis(x, tensor.array(indices), v, axis)
        return ops.sum(ops.sin(y) * tensor.array(w))

    def reference(v: Any) -> Any:
        y = np.array(x, dtype=np.float64)
        np.put_along_axis(y, indices, v, axis)
        return np.sum(np.sin(y) * w)

    got = grad(f, argnums=1)(tensor.array(x), tensor.array(v)).numpy()
    np.testing.assert_allclose(got, slopes(reference, v.astype(np.float64)), atol=1e-5)
