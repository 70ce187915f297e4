"""Transforms from several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml._core.tensor import EmberTensor
from ember_ml.autodiff import grad, hessian, jacobian, jvp, vmap
from ember_ml.nn import tensor
from tests.backends import eager

THREADS = 8
ROUNDS = 20
X = np.linspace(0.1, 1.0, 5)


def f(x: EmberTensor) -> EmberTensor:
    return ops.sum(ops.sin(x) * x * ops.exp(x))


def slope(x: EmberTensor) -> EmberTensor:
    return jvp(f, (x,), (ops.ones_like(x),))[1]


def taped(x: EmberTensor) -> EmberTensor | None:
    with GradientTape() as tape:
        tape.watch(x)
        y = slope(x)
    return tape.gradient(y, x)


TRANSFORMS: dict[str, Callable[[EmberTensor], EmberTensor | None]] = {
    "jvp": slope,
    "hessian": hessian(f),
    "grad of jvp": grad(slope),
    "jacobian in forward mode": jacobian(grad(f), mode="forward"),
    "vmap of grad": lambda x: vmap(grad(f))(ops.stack([x, x])),
    "tape over jvp": taped,
}


@pytest.mark.parametrize("backend", eager(), indirect=True)
def test_transforms_from_several_threads(backend: str) -> None:
    """Each thread runs all transforms, from another one on, and compares with a single thread."""
    x = tensor.array(X, dtype="float64")
    want = {name: transform(x).numpy() for name, transform in TRANSFORMS.items()}
    failures: list[str] = []
    start = threading.Barrier(THREADS)

    def work(number: int) -> None:
        names = list(TRANSFORMS)
        start.wait()
        for at in range(number, number + ROUNDS):
            name = names[at % len(names)]
            try:
                np.testing.assert_array_equal(TRANSFORMS[name](x).numpy(), want[name])
            except Exception as error:
                failures.append(f"{name}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
