"""Gradients at ties, zeros and other points where a formula could fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ember_ml import GradientTape, ops
from ember_ml._core.convert import convert_to_tensor

HALF = float(np.sqrt(0.5))

ROWS: dict[str, tuple[Callable[..., Any], list[list[float]], list[list[float]]]] = {
    "max": (ops.max, [[1, 3, 3, 2]], [[0, 0.5, 0.5, 0]]),
    "min": (ops.min, [[1, 1, 3, 2]], [[0.5, 0.5, 0, 0]]),
    "cummax": (lambda x: ops.cummax(x, 0), [[1, 3, 3, 2]], [[1, 1, 2, 0]]),
    "abs": (ops.abs, [[0, -2]], [[0, -1]]),
    "relu": (ops.relu, [[0, -2, 2]], [[0, 0, 1]]),
    "elu": (ops.elu, [[0, 1]], [[1, 1]]),
    "celu": (lambda x: ops.celu(x, 0.5), [[0, 1]], [[1, 1]]),
    "prod, one zero": (ops.prod, [[1, 0, 2, 3]], [[0, 6, 0, 0]]),
    "prod, two zeros": (ops.prod, [[1, 0, 0, 3]], [[0, 0, 0, 0]]),
    "cumprod": (lambda x: ops.cumprod(x, 0), [[1, 0, 2, 3]], [[1, 9, 0, 0]]),
    "std": (ops.std, [[2, 2]], [[0, 0]]),
    "nanstd": (ops.nanstd, [[2, float("nan"), 2]], [[0, 0, 0]]),
    "normalize": (lambda x: ops.normalize(x, eps=0.5), [[0, 0]], [[2, 2]]),
    "hypot": (ops.hypot, [[3], [-3]], [[HALF], [-HALF]]),
    "atan2": (ops.atan2, [[0], [0]], [[0], [0]]),
    "logaddexp": (ops.logaddexp, [[3], [3]], [[0.5], [0.5]]),
    "logaddexp2": (ops.logaddexp2, [[3], [3]], [[0.5], [0.5]]),
    "sinc": (ops.sinc, [[0, 1]], [[0, -1]]),
    "square": (lambda x: x**2, [[0, 3]], [[0, 6]]),
}


@pytest.mark.parametrize("name", ROWS)
def test_gradient(name: str, backend: str) -> None:
    function, values, want = ROWS[name]
    sources = [convert_to_tensor(np.array(value, np.float32)) for value in values]
    with GradientTape() as tape:
        tape.watch(sources)
        out = function(*sources)
    for got, expected in zip(tape.gradient(out, sources), want, strict=True):
        np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)


def test_a_hard_sample_has_the_gradient_of_the_soft_one(backend: str) -> None:
    x = convert_to_tensor(np.array([[0.5, -1.0, 2.0], [1.0, 1.5, -0.5]], np.float32))
    found = []
    for hard in (False, True):
        with GradientTape() as tape:
            tape.watch(x)
            sample = ops.gumbel_softmax(x, 0.7, hard=hard, seed=3)
            out = ops.sum(sample * ops.cumsum(ops.ones_like(sample), 1))
        found.append(tape.gradient(out, x).numpy())
    np.testing.assert_allclose(np.sort(sample.numpy()), [[0, 0, 1]] * 2, atol=1e-6)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
