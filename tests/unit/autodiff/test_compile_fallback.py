"""Functions that a compiler cannot compile whole: the values are those of eager calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import compile, custom_gradient, grad, hessian, jacobian
from tests.backends import TRACING

Function = Callable[[EmberTensor], EmberTensor]

pytestmark = pytest.mark.filterwarnings("ignore")  # the fallback warns


@custom_gradient
def surrogate(x: EmberTensor) -> tuple[EmberTensor, Function]:
    """Return a step function with the gradient of another function."""
    return ops.where(x > 0.5, 1.0, 0.0), lambda g: g * ops.exp(-x * x)


def written(x: EmberTensor) -> EmberTensor:
    y = x * 1.0
    y[[0, 0, 2]] = ops.cos(x)
    return ops.sum(y * y)


def taped(x: EmberTensor) -> EmberTensor:
    with GradientTape() as tape:
        tape.watch(x)
        y = ops.sum(ops.sin(x) * x)
    gradient = tape.gradient(y, x)
    assert gradient is not None
    return ops.sum(gradient * gradient)


FUNCTIONS: dict[str, Function] = {
    "custom gradient": grad(lambda x: ops.sum(surrogate(x) * x)),
    "second derivative of a custom gradient": grad(
        lambda x: ops.sum(grad(lambda x: ops.sum(surrogate(x) * x))(x) ** 2)
    ),
    "indices in a list": grad(written),
    "hessian of a tape": hessian(taped),
    "forward jacobian of a tape": jacobian(taped, mode="forward"),
    "tape": taped,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_values_are_those_of_eager_calls(name: str, backend: str) -> None:
    options = {key: value for key, value in TRACING.get(backend, {}).items() if key != "fullgraph"}
    x = ops.array([[0.3, 0.9], [0.7, 0.1], [0.2, 0.6]])
    expected = FUNCTIONS[name](x).numpy()
    compiled = compile(FUNCTIONS[name], **options)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).numpy(), expected, rtol=1e-5, atol=1e-6)
