"""Derivatives of every order at 0**0 and at minus infinity."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad, hessian, jvp

Function = Callable[[EmberTensor], EmberTensor]
INF = float("inf")


def like(x: EmberTensor, values: Sequence[float]) -> EmberTensor:
    return convert_to_tensor(values, dtype=x.dtype, backend=x.backend)


LOG = np.log(2.0)
POWERS: dict[str, tuple[Function, list[float], list[float], list[float]]] = {
    "base": (lambda x: x ** like(x, [0.0, 1.0, 2.0]), [0.0, 0.0, 0.0], [0, 1, 0], [0, 0, 2]),
    "exponent": (
        lambda x: like(x, [0.0, 0.0, 2.0]) ** x,
        [0.0, 1.0, 0.0],
        [0, 0, LOG],
        [0, 0, LOG**2],
    ),
    "number": (lambda x: 0.0**x, [0.0, 1.0, 2.0], [0, 0, 0], [0, 0, 0]),
    "both": (lambda x: x ** (2.0 * x), [0.0, 0.0, 1.0], [0, 0, 2], [0, 0, 6]),
    "float_power": (
        lambda x: ops.float_power(x, like(x, [0.0, 1.0, 2.0])),
        [0.0, 0.0, 0.0],
        [0, 1, 0],
        [0, 0, 2],
    ),
}
"""Functions, points, first and second derivatives."""


def summed(f: Function) -> Function:
    return lambda x: ops.sum(f(x))


def pushed(f: Function) -> Function:
    return lambda x: jvp(f, (x,), (ops.ones_like(x),))[1]


FIRST: dict[str, Callable[[Function], Function]] = {
    "grad": lambda f: grad(summed(f)),
    "jvp": pushed,
}
SECOND: dict[str, Callable[[Function], Function]] = {
    "grad of grad": lambda f: grad(summed(grad(summed(f)))),
    "grad of jvp": lambda f: grad(summed(pushed(f))),
    "jvp of jvp": lambda f: pushed(pushed(f)),
    "hessian": lambda f: lambda x: ops.diagonal(hessian(summed(f))(x)),
}


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_zero(name: str, backend: str) -> None:
    f, point, slopes, curvatures = POWERS[name]
    x = ops.array(point)
    for nesting, expected in [(FIRST, slopes), (SECOND, curvatures)]:
        for label, transform in nesting.items():
            got = transform(f)(x).numpy()
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, err_msg=label)


@pytest.mark.parametrize("start", [0, 1])
def test_logcumsumexp_at_minus_infinity(start: int, backend: str) -> None:
    """An element that is not finite changes no derivative of the finite ones."""
    finite = np.array([0.3, 0.5, -0.2])
    place = np.arange(4) != start
    values = np.full(4, -INF)
    values[place] = finite

    def f(x: EmberTensor) -> EmberTensor:
        return ops.logcumsumexp(x, axis=0)[np.flatnonzero(place)]

    def plain(x: EmberTensor) -> EmberTensor:
        return ops.log(ops.cumsum(ops.exp(x), axis=0))

    for label, transform in {**FIRST, **SECOND}.items():
        got = transform(lambda x: f(x) * like(x, [1.0, 2.0, 3.0]))
        want = transform(lambda x: plain(x) * like(x, [1.0, 2.0, 3.0]))
        if "jvp" in label.split(" of ")[0]:  # a value per result
            ours = got(ops.array(values.tolist())).numpy()
        else:
            ours = got(ops.array(values.tolist())).numpy()[place]
        expected = want(ops.array(finite.tolist())).numpy()
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5, err_msg=label)


def test_logcumsumexp_of_minus_infinity_has_finite_gradients(backend: str) -> None:
    gradient = grad(summed(lambda x: ops.logcumsumexp(x, axis=0)))(ops.array([-INF, -INF, 0.5]))
    assert np.all(np.isfinite(gradient.numpy()))
