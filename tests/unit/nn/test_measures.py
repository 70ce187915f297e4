"""Measures of networks against SciPy, networkx and graphs computed by hand."""

from __future__ import annotations

import itertools
import math
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.stats
from scipy.sparse.csgraph import shortest_path

from ember_ml._core.errors import EmberError
from ember_ml.nn import wirings
from ember_ml.nn.tensor import array
from ember_ml.nn.wirings import communities, distance_correlation, modularity, small_worldness


def random_matrix(units: int = 20, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((units, units))


def test_the_correlation_with_distances(backend: str) -> None:
    weights, distances = random_matrix(), np.abs(random_matrix(seed=1))
    apart = ~np.eye(20, dtype=bool)
    expected = scipy.stats.pearsonr(np.abs(weights)[apart], distances[apart]).statistic
    assert distance_correlation(weights, distances) == pytest.approx(expected, abs=1e-12)
    tensors = [array(each.astype(np.float32)) for each in (weights, distances)]
    found = distance_correlation(*tensors)
    assert found == pytest.approx(expected, abs=1e-5)
    assert distance_correlation(np.ones((4, 4)), np.ones((4, 4))) == 0.0
    assert distance_correlation([[3.0]], [[0.0]]) == 0.0


def cliques(sizes: list[int]) -> np.ndarray:
    """Return the adjacency of cliques, each connected to the next by one edge."""
    graph = nx.disjoint_union_all([nx.complete_graph(size) for size in sizes])
    starts = np.cumsum([0, *sizes[:-1]])
    graph.add_edges_from(itertools.pairwise(starts))
    return nx.to_numpy_array(graph)


def quality(matrix: np.ndarray, labels: list[int]) -> float:
    """Return Newman's modularity by its definition."""
    degrees, total = matrix.sum(axis=1), matrix.sum()
    same = np.equal.outer(labels, labels)
    return float(((matrix - np.outer(degrees, degrees) / total) * same).sum() / total)


def test_modularity_of_known_communities() -> None:
    matrix = cliques([5, 6, 7])
    found = communities(matrix)
    assert found.labels == [0] * 5 + [1] * 6 + [2] * 7
    assert found.modularity == pytest.approx(quality(matrix, found.labels))
    assert modularity(matrix) == found.modularity
    # two triangles with one edge between them: 2 (3 / 7 - (7 / 14)^2)
    assert modularity(cliques([3, 3])) == pytest.approx(2 * (3 / 7 - 0.25))
    assert modularity(np.ones((6, 6))) == pytest.approx(0.0, abs=1e-9)
    assert modularity(np.zeros((3, 3))) == 0.0
    assert communities(np.zeros((3, 3))).labels == [0, 1, 2]


def test_weights_count_by_strength_and_not_by_sign_or_direction() -> None:
    matrix = random_matrix()
    found = communities(matrix)
    both = (np.abs(matrix) + np.abs(matrix).T) / 2
    np.fill_diagonal(both, 0.0)
    assert found.modularity == pytest.approx(quality(both, found.labels))
    assert communities(-matrix.T) == found
    assert communities(matrix) == found  # the seed decides
    sparse = communities(matrix, density=0.2)
    kept = np.where(both >= np.sort(both[np.triu_indices(20, 1)])[-38], both, 0.0)
    assert np.count_nonzero(kept) == 2 * 38
    assert sparse.modularity == pytest.approx(quality(kept, sparse.labels))


def clustering(matrix: np.ndarray) -> float:
    """Return the mean fraction of pairs of neighbors that are connected."""
    degrees = matrix.sum(axis=1)
    triangles = np.diag(np.linalg.matrix_power(matrix, 3))
    pairs = degrees * (degrees - 1)
    return float(np.where(pairs > 0, triangles / np.maximum(pairs, 1), 0.0).mean())


def path_length(matrix: np.ndarray) -> float:
    lengths = shortest_path(matrix, unweighted=True)
    return float(lengths[np.isfinite(lengths) & (lengths > 0)].mean())


def test_small_worldness_by_its_definition() -> None:
    graph = nx.to_numpy_array(nx.watts_strogatz_graph(40, 6, 0.1, seed=0))
    density = graph.sum() / (40 * 39)
    nulls = [nx.to_numpy_array(nx.gnm_random_graph(40, 120, seed=3 + at)) for at in range(4)]
    ratio = clustering(graph) / np.mean([clustering(each) for each in nulls])
    stretch = path_length(graph) / np.mean([path_length(each) for each in nulls])
    found = small_worldness(graph, density=density, nulls=4, seed=3)
    assert found == pytest.approx(ratio / stretch)
    assert found > 1.5
    random = nx.to_numpy_array(nx.gnm_random_graph(40, 120, seed=9))
    assert 0.5 < small_worldness(random, density=density) < 1.5
    for size in (0, 5):
        assert math.isnan(small_worldness(np.zeros((size, size))))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: modularity(np.ones((2, 3))), r"shape \(units, units\), got \(2, 3\)"),
        (lambda: modularity([["a"]]), "expected a matrix of real numbers"),
        (lambda: modularity([[1.0], [1.0, 2.0]]), "expected a matrix of real numbers"),
        (lambda: modularity(np.ones((2, 2), complex)), "expected a matrix of real numbers"),
        (lambda: modularity(np.ones((3, 3)), density="all"), r"density \('all'\)"),
        (lambda: modularity([[math.nan]]), "modularity|communities: .* NaN or infinite"),
        (lambda: modularity(np.ones((3, 3)), density=0.0), r"density \(0.0\)"),
        (lambda: communities(np.ones((3, 3)), repeats=0), "repeats must be at least 1, not 0"),
        (lambda: communities(np.ones((3, 3)), seed="a"), r"seed \('a'\) must be an integer"),
        (lambda: small_worldness(np.ones((3, 3)), density=2.0), r"density \(2.0\)"),
        (lambda: small_worldness(np.ones((3, 3)), nulls=0), "nulls must be at least 1, not 0"),
        (lambda: distance_correlation(np.ones((2, 2)), np.ones((3, 3))), "same shape"),
        (lambda: distance_correlation(np.ones(2), np.ones(2)), r"got \(2,\)"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(EmberError, match=message):
        call()


def test_without_networkx_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)
    for function in (wirings.communities, wirings.small_worldness):
        with pytest.raises(ImportError, match="needs networkx; install it with: "):
            function(np.ones((3, 3)))
