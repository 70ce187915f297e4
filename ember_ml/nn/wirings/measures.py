"""Measures of weighted networks of neurons: cost of space, communities and small worlds.

They take matrices of weights on the host, as tensors, arrays or nested lists. Graphs are undirected
and without self-connections: the strength of a pair is the mean of |w_ij| and |w_ji|.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ember_ml._core import numbers
from ember_ml._core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendNotInstalledError,
    ShapeError,
)
from ember_ml._core.requirements import install_command
from ember_ml._core.tensor import EmberTensor, TensorLike


def distance_correlation(weights: TensorLike, distances: TensorLike) -> float:
    """Return the Pearson correlation of absolute weights and distances, without the diagonal.

    It is 0 if all weights or all distances are equal.

    Args:
        weights: Weights, (units, units).
        distances: Distances between the neurons, (units, units).

    Example:
        >>> weights = [[0.0, 4.0, 1.0], [4.0, 0.0, 4.0], [1.0, 4.0, 0.0]]
        >>> distances = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
        >>> nn.wirings.distance_correlation(weights, distances)
        -1.0
    """
    strengths = np.abs(_square("distance_correlation", weights))
    lengths = _square("distance_correlation", distances)
    if strengths.shape != lengths.shape:
        raise ShapeError(
            "distance_correlation: weights and distances must have the same shape, got "
            f"{strengths.shape} and {lengths.shape}"
        )
    apart = ~np.eye(len(strengths), dtype=bool)
    if not apart.any():
        return 0.0
    x, y = (each[apart] - each[apart].mean() for each in (strengths, lengths))
    scale = math.sqrt(float(x @ x) * float(y @ y))
    return float(np.clip(x @ y / scale, -1.0, 1.0)) if scale else 0.0


class Communities(NamedTuple):
    """Division of a network into communities."""

    modularity: float
    """Modularity Q: fraction of the weight within communities, minus that expected by chance."""
    labels: list[int]
    """Index of the community of each neuron."""


def communities(
    weights: TensorLike, *, density: float | None = None, repeats: int = 5, seed: int = 0
) -> Communities:
    """Return the communities with the highest modularity, by the Louvain method.

    Needs networkx (the extra `graph`).

    Args:
        weights: Weights, (units, units).
        density: Fraction of the pairs to use, the strongest ones. Default: all of them.
        repeats: Number of runs with different orders of the neurons. Default: 5.
        seed: Seed of the first run. Default: 0.

    Reference: Blondel et al., "Fast unfolding of communities in large networks", 2008.

    Example:
        >>> pairs = [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
        >>> nn.wirings.communities(pairs)
        Communities(modularity=0.5, labels=[0, 0, 1, 1])
    """
    nx = _networkx("communities")
    repeats = numbers.count("communities", "repeats", repeats, least=1)
    seed = numbers.count("communities", "seed", seed)
    graph = nx.from_numpy_array(_strongest("communities", weights, density))
    if not graph.number_of_edges():
        return Communities(0.0, list(range(len(graph))))
    runs = [nx.community.louvain_communities(graph, seed=seed + at) for at in range(repeats)]
    scored = [(float(nx.community.modularity(graph, parts)), parts) for parts in runs]
    value, parts = max(scored, key=lambda each: each[0])
    owner = {node: at for at, part in enumerate(sorted(parts, key=min)) for node in part}
    return Communities(value, [owner[node] for node in range(len(graph))])


def modularity(weights: TensorLike, *, density: float | None = None, seed: int = 0) -> float:
    """Return the modularity Q of a network; see `communities`.

    Args:
        weights: Weights, (units, units).
        density: Fraction of the pairs to use, the strongest ones. Default: all of them.
        seed: Seed of the search. Default: 0.
    """
    return communities(weights, density=density, seed=seed).modularity


def small_worldness(
    weights: TensorLike, *, density: float = 0.1, nulls: int = 10, seed: int = 0
) -> float:
    r"""Return the small-worldness of the strongest connections.

    .. math:: \sigma = \frac{C / C_0}{L / L_0}

    C is the mean clustering coefficient and L the mean length of the shortest paths between
    connected pairs; C0 and L0 are their means over random graphs with as many neurons and
    connections. Values above 1 are small worlds. It is NaN without triangles in the random graphs.
    Needs networkx (the extra `graph`).

    Args:
        weights: Weights, (units, units).
        density: Fraction of the pairs to use, the strongest ones. Default: 0.1.
        nulls: Number of random graphs. Default: 10.
        seed: Seed of the first random graph. Default: 0.

    Reference: Humphries and Gurney, "Network small-world-ness", 2008.
    """
    nx = _networkx("small_worldness")
    nulls = numbers.count("small_worldness", "nulls", nulls, least=1)
    seed = numbers.count("small_worldness", "seed", seed)
    strongest = _strongest("small_worldness", weights, density)
    if not len(strongest):
        return math.nan
    graph = nx.from_numpy_array((strongest > 0).astype(int))
    size = len(graph), graph.number_of_edges()
    random = [nx.gnm_random_graph(*size, seed=seed + at) for at in range(nulls)]
    clustering, length = nx.average_clustering(graph), _mean_path(nx, graph)
    null_clustering = float(np.mean([nx.average_clustering(each) for each in random]))
    null_length = float(np.mean([_mean_path(nx, each) for each in random]))
    if not (null_clustering and length):
        return math.nan
    return float((clustering / null_clustering) / (length / null_length))


def _mean_path(nx: Any, graph: Any) -> float:
    """Return the mean length of the shortest paths between connected pairs; 0 without any."""
    lengths = [
        length
        for source, reached in nx.all_pairs_shortest_path_length(graph)
        for target, length in reached.items()
        if target != source
    ]
    return float(np.mean(lengths)) if lengths else 0.0


def _strongest(name: str, weights: TensorLike, density: float | None) -> np.ndarray:
    """Return the strengths of pairs, (units, units), with zeros for all but the strongest."""
    matrix = np.abs(_square(name, weights))
    pairs = (matrix + matrix.T) / 2
    np.fill_diagonal(pairs, 0.0)
    if density is None:
        return pairs
    if not 0.0 < numbers.real(name, "density", density) <= 1.0:
        raise ArgumentError(f"{name}: density ({density}) must be above 0 and at most 1")
    rows, columns = np.triu_indices(len(pairs), 1)
    count = round(density * len(rows))
    kept = np.argsort(-pairs[rows, columns], kind="stable")[:count]
    result = np.zeros_like(pairs)
    result[rows[kept], columns[kept]] = pairs[rows[kept], columns[kept]]
    return result + result.T


def _square(name: str, values: TensorLike) -> np.ndarray:
    """Return a square matrix of finite float64 values."""
    values = values.tolist() if isinstance(values, EmberTensor) else values
    try:
        matrix = np.asarray(values).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            f"{name}: expected a matrix of real numbers, got {values!r:.60}"
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"{name}: expected a matrix of shape (units, units), got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ArgumentError(f"{name}: the matrix has values that are NaN or infinite")
    return matrix


def _networkx(name: str) -> Any:
    try:
        import networkx as nx  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise BackendNotInstalledError(
            f"{name} needs networkx; install it with: {install_command('networkx')}"
        ) from error
    return nx
