"""Positions of neurons, their distances and delays, the cost of connections and pruning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from scipy.spatial.distance import cdist

from ember_ml import nn, ops
from ember_ml._core.errors import ArgumentError
from ember_ml.autodiff import value_and_grad
from ember_ml.backend import available, use_backend
from ember_ml.configs import Config
from ember_ml.nn.space import (
    SpatialEmbedding,
    WiringCost,
    communicability,
    grid_shape,
    pruning_mask,
    sparsity,
)
from ember_ml.nn.tensor import array
from tests.backends import has_dtype

LAYOUTS: list[dict[str, Any]] = [
    {"units": 100},
    {"units": 7, "dimensions": 1, "scale": 0.5},
    {"units": 23, "dimensions": 2},
    {"units": 30, "layout": "sphere"},
    {"units": 9, "layout": "sphere", "dimensions": 2, "scale": 3.0},
    {"units": 12, "layout": "random", "dimensions": 2, "seed": 4},
    {"units": 1},
    {"units": 3, "positions": [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]},
]


def numeric_gradient(function: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the central differences of a scalar function in float64."""
    gradient = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        low, high = x.copy(), x.copy()
        low[at] -= step
        high[at] += step
        gradient[at] = (function(high) - function(low)) / (2 * step)
    return gradient


@pytest.mark.parametrize(
    ("units", "dimensions", "shape"),
    [
        (100, 3, (5, 5, 4)),
        (97, 3, (5, 5, 4)),
        (1000, 3, (10, 10, 10)),
        (10, 2, (4, 3)),
        (5, 1, (5,)),
        (1, 3, (1, 1, 1)),
        (2, 3, (2, 1, 1)),
    ],
)
def test_grids_are_nearly_cubic(units: int, dimensions: int, shape: tuple[int, ...]) -> None:
    assert grid_shape(units, dimensions) == shape
    points = SpatialEmbedding(units, dimensions=dimensions).positions.numpy()
    assert len(np.unique(points, axis=0)) == units
    assert (points.max(axis=0) <= np.array(shape) - 1).all()


@pytest.mark.parametrize("options", LAYOUTS, ids=str)
def test_distances_and_delays(options: dict[str, Any], backend: str) -> None:
    embedding = SpatialEmbedding(**options)
    points = embedding.positions.numpy().astype(np.float64)
    expected = cdist(points, points)
    np.testing.assert_allclose(embedding.distances().numpy(), expected, atol=2e-6)
    np.testing.assert_array_equal(embedding().numpy(), embedding.distances().numpy())
    for speed, dt in ((1.0, 1.0), (0.37, 1.0), (2.0, 0.25)):
        steps = expected / (speed * dt)
        delays = embedding.delays(speed, dt)
        assert delays.dtype.kind == "int"
        np.testing.assert_array_equal(
            delays.numpy(), np.maximum(1, np.ceil(steps - 1e-4)).astype(int)
        )
        assert embedding.max_delay(speed, dt) == delays.numpy().max()
        real = embedding.delays(speed, dt, interpolated=True).numpy()
        np.testing.assert_allclose(real, np.maximum(1.0, steps), rtol=1e-5)


def test_layouts_are_as_described() -> None:
    sphere = SpatialEmbedding(200, "sphere", scale=2.0)
    points = sphere.positions.numpy().astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 2.0, rtol=1e-6)
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=0.02)
    nearest = np.sort(cdist(points, points), axis=1)[:, 1]
    assert nearest.max() < 1.8 * nearest.min()  # evenly spread
    circle = SpatialEmbedding(6, "sphere", dimensions=2).distances().numpy()
    np.testing.assert_allclose(np.sort(circle[0])[1:3], 1.0, rtol=1e-6)  # a regular hexagon
    cube = SpatialEmbedding(500, "random", seed=1).positions.numpy()
    assert ((cube >= 0.0) & (cube < 1.0)).all()
    assert np.abs(cube.mean(axis=0) - 0.5).max() < 0.06
    other = SpatialEmbedding(500, "random", seed=2).positions.numpy()
    assert np.abs(cube - other).max() > 0.1


def test_positions_are_the_same_on_every_backend() -> None:
    results = []
    for backend in available():
        with use_backend(backend):
            results.append(SpatialEmbedding(20, "random", seed=5).positions.numpy())
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_gradients_reach_positions_and_ignore_zero_distances(backend: str) -> None:
    points = np.random.default_rng(0).standard_normal((5, 2))
    points[3] = points[1]  # at the same place
    factors = np.random.default_rng(1).standard_normal((5, 5))
    embedding = SpatialEmbedding(5, positions=points, learnable=True)
    assert embedding.positions.trainable
    weights = array(factors.astype(np.float32))
    _, grads = nn.value_and_grad(embedding, lambda: (embedding.distances() * weights).sum())()

    def smooth(x: np.ndarray) -> float:
        moved = factors.copy()
        moved[1, 3] = moved[3, 1] = 0.0  # no derivative there
        return float((cdist(x, x) * moved).sum())

    np.testing.assert_allclose(
        grads["positions"].numpy(), numeric_gradient(smooth, points), rtol=1e-4, atol=1e-4
    )


def test_positions_that_are_not_finite_do_not_go_unnoticed(backend: str) -> None:
    embedding = SpatialEmbedding(4, learnable=True)
    embedding.positions.assign(embedding.positions + math.nan)
    assert np.isnan(embedding.distances().numpy()).any()
    assert math.isnan(float(WiringCost()(ops.ones((4, 4)), embedding.distances())))
    assert np.isnan(embedding.delays(1.0).numpy()).any()
    with pytest.raises(ValueError, match="positions contain NaN or infinite values"):
        embedding.delays(1.0, interpolated=False)


def test_a_config_restores_positions(backend: str) -> None:
    given = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    for source in (given, array(given), given.tolist()):
        embedding = SpatialEmbedding(4, positions=source)
        twin = Config.from_yaml(embedding.config.to_yaml()).create()
        np.testing.assert_array_equal(twin.positions.numpy(), given)
    moved = SpatialEmbedding(4, learnable=True)
    moved.positions.assign(given)
    twin = moved.config.create()
    twin.load_state_dict(moved.state_dict())
    np.testing.assert_array_equal(twin.positions.numpy(), given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SpatialEmbedding(4, "cube"), "layout: should be 'grid', 'sphere' or 'random'"),
        (lambda: SpatialEmbedding(0), "units: should be greater than or equal to 1"),
        (lambda: SpatialEmbedding(4, dimensions=4), "dimensions"),
        (lambda: SpatialEmbedding(4, "sphere", 1), "needs 2 or 3 dimensions"),
        (lambda: SpatialEmbedding(3, positions=[[0.0], [1.0]]), "units=3 .* got 2 positions"),
        (lambda: SpatialEmbedding(2, positions=[[0.0], [1.0, 2.0]]), "with 1, 2 coordinates"),
        (lambda: SpatialEmbedding(1, positions=[[0.0] * 4]), "with 4 coordinates"),
        (lambda: SpatialEmbedding(1, positions=[[]]), "with 0 coordinates"),
        (lambda: SpatialEmbedding(1, positions=[[math.nan]]), "finite number, not nan"),
        (lambda: SpatialEmbedding(1, positions=[[math.inf]]), "finite number, not inf"),
        (lambda: SpatialEmbedding(4, scale=0.0), "scale"),
        (lambda: SpatialEmbedding(4).delays(0.0), r"speed \(0.0\) must be a finite"),
        (
            lambda: SpatialEmbedding(4).delays(-1.0),
            r"speed \(-1.0\) must be a finite number above 0",
        ),
        (lambda: SpatialEmbedding(4).delays(math.nan), r"speed \(nan\)"),
        (
            lambda: SpatialEmbedding(4).delays(1.0, 0.0),
            r"dt \(0.0\) must be a finite number above 0",
        ),
        (lambda: SpatialEmbedding(4).max_delay(1.0, math.inf), r"dt \(inf\)"),
        (lambda: WiringCost(-0.1), r"gamma \(-0.1\) must be a finite number of at least 0"),
        (lambda: WiringCost(math.nan), r"gamma \(nan\)"),
        (lambda: WiringCost(1.0, -1.0), "distance_power"),
        (lambda: WiringCost(1.0, 1.0, math.inf), "communicability_power"),
        (lambda: WiringCost()(ops.ones((2, 3)), ops.ones((2, 3))), r"\(units, units\)"),
        (lambda: WiringCost()(ops.ones((2, 2)), ops.ones((3, 3))), r"\(2, 2\) and \(3, 3\)"),
        (lambda: SpatialEmbedding(4).delays("fast"), r"speed \('fast'\) must be a number"),
        (lambda: WiringCost(None), r"gamma \(None\) must be a number"),
        (lambda: communicability(ops.ones((2, 3))), r"\(units, units\), got \(2, 3\)"),
        (lambda: communicability(ops.ones((2, 2)), terms=0), "terms must be at least 1, not 0"),
        (lambda: communicability(ops.ones((2, 2)), terms=1.5), r"terms \(1.5\) must be an integer"),
        (lambda: communicability(ops.ones((2, 2)), eps=-1.0), r"eps \(-1.0\)"),
        (lambda: pruning_mask(ops.ones(2), fraction="half"), r"fraction \('half'\)"),
        (lambda: pruning_mask(ops.ones((2, 2))), "either fraction or threshold"),
        (lambda: pruning_mask(ops.ones(2), fraction=0.5, threshold=1.0), "either"),
        (lambda: pruning_mask(ops.ones(2), fraction=1.5), r"fraction \(1.5\)"),
        (lambda: pruning_mask(ops.ones(2), fraction=math.nan), r"fraction \(nan\)"),
        (lambda: pruning_mask(ops.ones(2), threshold=-1.0), r"threshold \(-1.0\)"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def exponential(weights: np.ndarray) -> np.ndarray:
    """Return the communicability by SciPy's matrix exponential."""
    strengths = np.abs(weights.astype(np.float64))
    root = 1.0 / np.sqrt(strengths.sum(axis=1) + 1e-8)
    result = scipy.linalg.expm(strengths * root[:, None] * root)
    np.fill_diagonal(result, 0.0)
    return result


def matrices() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((100, 100)) * 0.1
    sparse = dense * (rng.random((100, 100)) < 0.05)
    sparse[7] = 0.0  # a neuron without connections
    symmetric = np.abs(dense + dense.T)
    return {"dense": dense, "sparse": sparse, "symmetric": symmetric, "zero": 0.0 * dense}


@pytest.mark.parametrize("kind", ["dense", "symmetric", "zero"])
def test_the_series_equals_the_matrix_exponential(kind: str, backend: str) -> None:
    weights = matrices()[kind]
    result = communicability(array(weights.astype(np.float32))).numpy()
    assert np.abs(result - exponential(weights)).max() < 1e-7


def test_more_terms_are_closer(backend: str) -> None:
    weights = np.abs(np.random.default_rng(1).standard_normal((3, 3)))
    x = array(weights.astype(np.float32))
    errors = [
        np.abs(communicability(x, terms=terms).numpy() - exponential(weights)).max()
        for terms in (4, 6, 8, 11)
    ]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[2] < 1e-5
    assert errors[3] < 5e-7


@pytest.mark.parametrize("kind", ["dense", "sparse", "symmetric", "zero"])
@pytest.mark.parametrize("powers", [(1.0, 1.0), (2.0, 0.5), (0.0, 1.0), (1.0, 0.0), (0.5, 2.0)])
def test_the_cost_of_connections(kind: str, powers: tuple[float, float], backend: str) -> None:
    p, c = powers
    weights = matrices()[kind].astype(np.float32)
    distances = SpatialEmbedding(100).distances()
    cost = WiringCost(0.3, p, c)
    apart = ~np.eye(100, dtype=bool)
    lengths, paths = distances.numpy().astype(np.float64), exponential(weights)
    terms = np.abs(weights) * lengths**p * np.where(paths > 0, paths, 0.0) ** c
    result = float(cost(array(weights), distances))
    assert result == pytest.approx(0.3 * terms[apart].sum(), rel=2e-5)
    layer = nn.Module()
    layer.weights = nn.Parameter(weights)
    _, grads = nn.value_and_grad(layer, lambda: cost(layer.weights, distances))()
    assert np.isfinite(grads["weights"].numpy()).all()


@pytest.mark.parametrize("powers", [(1.0, 1.0), (2.0, 0.5)])
def test_the_gradient_of_the_cost(powers: tuple[float, float], backend: str) -> None:
    p, c = powers
    rng = np.random.default_rng(2)
    weights, points = rng.standard_normal((6, 6)), rng.standard_normal((6, 3))

    def reference(weights: np.ndarray, points: np.ndarray) -> float:
        terms = np.abs(weights) * cdist(points, points) ** p * exponential(weights) ** c
        return float(0.7 * terms.sum())

    embedding = SpatialEmbedding(6, positions=points, learnable=True)
    embedding.weights = nn.Parameter(weights.astype(np.float32))
    cost = WiringCost(0.7, p, c)
    loss, grads = nn.value_and_grad(
        embedding, lambda: cost(embedding.weights, embedding.distances())
    )()
    assert float(loss) == pytest.approx(reference(weights, points), rel=1e-4)
    by_weights = numeric_gradient(lambda w: reference(w, points), weights)
    by_points = numeric_gradient(lambda x: reference(weights, x), points)
    np.testing.assert_allclose(grads["weights"].numpy(), by_weights, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(grads["positions"].numpy(), by_points, rtol=2e-3, atol=2e-4)


def test_the_cost_and_its_gradient_compile(backend: str, trace: Any) -> None:
    weights, distances = ops.random.normal((6, 6), seed=0), SpatialEmbedding(6).distances()
    step = value_and_grad(lambda w: WiringCost()(w, distances))
    (cost, grads), (expected, expected_grads) = trace(step)(weights), step(weights)
    assert float(cost) == pytest.approx(float(expected), rel=1e-5)
    np.testing.assert_allclose(grads.numpy(), expected_grads.numpy(), rtol=1e-4, atol=1e-6)


def test_half_precision_is_computed_in_float32(backend: str) -> None:
    dtype = "bfloat16" if has_dtype(backend, "bfloat16") else "float16"
    embedding = SpatialEmbedding(8).to(dtype=dtype)
    assert embedding.distances().dtype.name == "float32"
    weights = ops.random.normal((8, 8), seed=0).astype(dtype)
    cost = WiringCost()(weights, embedding.distances())
    assert cost.dtype.name == "float32"
    expected = WiringCost()(weights.astype("float32"), embedding.distances())
    assert float(cost) == pytest.approx(float(expected), rel=1e-6)


def test_masks_keep_the_strongest(backend: str) -> None:
    weights = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)
    weights[0] = 0.0
    for fraction in (0.0, 0.3, 0.77, 1.0):
        mask = pruning_mask(array(weights), fraction=fraction).numpy()
        removed = round(fraction * weights.size)
        assert (mask == 0).sum() == removed
        if 0 < removed < weights.size:
            assert np.abs(weights[mask == 0]).max() <= np.abs(weights[mask == 1]).min()
    mask = pruning_mask(array(weights), threshold=0.5).numpy()
    np.testing.assert_array_equal(mask, np.abs(weights) >= 0.5)
    report = sparsity(array(weights))
    assert (report.connections, report.possible) == (30, 35)
    assert report.fraction == pytest.approx(1 / 7)
    assert str(report) == "30 of 35 connections (14.3% sparse)"


def test_too_many_neurons_are_refused_before_they_need_memory() -> None:
    with pytest.raises(ArgumentError, match="units must be at most 32768"):
        SpatialEmbedding(2**40)
