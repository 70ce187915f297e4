"""Tests of initializers: identical on every backend, with the documented moments."""

from __future__ import annotations

import numpy as np
import pytest

from ember_ml import ops, registry
from ember_ml.backend import available, use_backend
from ember_ml.nn import initializers, layers

NAMES = [entry.name for entry in registry.available("initializers")]


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits_on_every_backend(name: str) -> None:
    draws = []
    for backend in available():
        with use_backend(backend):
            ops.random.set_seed(3)
            draws.append(initializers.get(name.split("/")[1])((6, 4)).numpy())
    for values in draws[1:]:
        assert values.tobytes() == draws[0].tobytes()


def test_layers_have_same_initial_weights_on_every_backend() -> None:
    draws = []
    for backend in available():
        with use_backend(backend):
            ops.random.set_seed(3)
            model = layers.MLP(5, [7], 3)
            draws.append(b"".join(p.numpy().tobytes() for p in model.parameters()))
    assert len(set(draws)) == 1


@pytest.mark.parametrize(
    ("initializer", "variance"),
    [
        (initializers.Glorot(), 2 / (300 + 200)),
        (initializers.Glorot(gain=2.0, distribution="normal"), 8 / (300 + 200)),
        (initializers.He(), 2 / 200),
        (initializers.He(distribution="normal"), 2 / 200),
        (initializers.Lecun(), 1 / 200),
        (initializers.Uniform(-1.0, 1.0), 1 / 3),
        (initializers.Normal(std=0.5), 0.25),
        # variance of a standard normal truncated to [-2, 2]
        (initializers.TruncatedNormal(std=1.0), 0.7737413),
    ],
    ids=repr,
)
def test_moments(initializer, variance: float, backend: str) -> None:
    values = initializer((300, 200), seed=0).numpy()
    assert values.dtype == np.float32
    assert abs(values.mean()) < 4 * (variance / values.size) ** 0.5
    assert abs(values.var() / variance - 1) < 0.02


def test_bounds(backend: str) -> None:
    assert (
        abs(initializers.TruncatedNormal(std=1.0, bound=1.5)((1000,), seed=0).numpy()).max() <= 1.5
    )
    limit = (6 / 500) ** 0.5
    assert abs(initializers.Glorot()((300, 200), seed=0).numpy()).max() <= limit


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 2, 3)])
def test_orthogonal(shape: tuple[int, ...], backend: str) -> None:
    matrix = initializers.Orthogonal(gain=2.0)(shape, seed=0).numpy().reshape(shape[0], -1)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert abs(small - 4.0 * np.eye(len(small))).max() < 1e-5


def test_identity_and_sparse(backend: str) -> None:
    assert initializers.Identity(2.0)((2, 3)).tolist() == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]
    values = initializers.Sparse(sparsity=0.75)((8, 50), seed=0).numpy()
    assert ((values == 0).sum(axis=0) == 6).all()


def test_fans_of_convolutions() -> None:
    values = initializers.He(distribution="normal")((400, 10, 5), seed=0).numpy()
    assert abs(values.var() / (2 / 50) - 1) < 0.05


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: initializers.Orthogonal()((3,)), "Orthogonal: shape must have at least two axes"),
        (lambda: initializers.Identity()((3,)), "Identity: shape must have exactly two axes"),
        (lambda: initializers.Uniform(2.0, 1.0), r"low \(2.0\) must not exceed high \(1.0\)"),
        (lambda: initializers.Normal(std=-1.0), "Normal: std: should be greater than or equal"),
        (lambda: initializers.get("glorott"), "did you mean 'glorot'"),
        (lambda: initializers.get(3), "expected a name, a config or an object"),
    ],
)
def test_errors(call, message: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError), match=message):
        call()
