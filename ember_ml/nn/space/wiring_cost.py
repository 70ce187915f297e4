"""The regularizer of spatially embedded networks."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.dtype import float32
from ember_ml._core.errors import ShapeError
from ember_ml._core.numbers import count, not_negative, positive
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.module import Module

_SMALLEST = 1e-12
"""Values up to this one have a power of zero, without a gradient."""


def communicability(weights: TensorLike, eps: float = 1e-8, terms: int = 8) -> Tensor:
    r"""Return the weighted communicability between all neurons, with a zero diagonal.

    .. math:: C = \exp(S^{-1/2} |W| S^{-1/2}), \quad S = \mathrm{diag}(\sum_j |W_{ij}|) + \epsilon

    The matrix has a spectral radius of 1, so that few terms of the series suffice. With 8 terms and
    100 densely connected neurons the result equals the matrix exponential to 1e-7.

    Args:
        weights: Weights W, (units, units).
        eps: Added to the sums of rows. Default: 1e-8.
        terms: Highest power of the series. Default: 8.

    Reference: Crofts and Higham, "A weighted communicability measure applied to complex brain
    networks", 2009.

    Example:
        >>> c = nn.space.communicability(ops.ones((2, 2)))  # (e - 1) / 2 off the diagonal
        >>> round(float(c[0, 1]), 4), float(c[0, 0])
        (0.8591, 0.0)
    """
    weights = convert_to_tensor(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ShapeError(
            f"communicability: expected weights of shape (units, units), got {weights.shape}"
        )
    terms = count("communicability", "terms", terms, least=1)
    eps = positive("communicability", "eps", eps)
    strengths = ops.abs(weights)
    root = ops.rsqrt(ops.sum(strengths, axis=1) + eps)
    scaled = strengths * root[:, None] * root[None]
    one = _identity_like(scaled)
    total = one + scaled / float(terms)
    for power in range(terms - 1, 0, -1):
        total = one + ops.matmul(scaled, total) / float(power)
    return total * (1.0 - one)


class WiringCost(Module):
    r"""Cost of the connections of a network: weight times distance times communicability.

    .. math:: \gamma \sum_{ij} |W_{ij}| \, D_{ij}^p \, C_{ij}^c

    where W is the weight from neuron i to neuron j, D their distance and C the communicability of
    W. Long connections are expensive, and so are connections between neurons that communicate
    through many other paths.

    Args:
        gamma: Factor of the cost. Default: 0.1.
        distance_power: Exponent p of the distances; 0 ignores them. Default: 1.
        communicability_power: Exponent c of the communicability; 0 ignores it. Default: 1.

    Reference: Achterberg et al., "Spatially embedded recurrent neural networks reveal widespread
    links between structural and functional neuroscience findings", 2023.

    Example:
        >>> embedding = nn.space.SpatialEmbedding(2)
        >>> cost = nn.space.WiringCost(1.0, communicability_power=0.0)
        >>> float(cost(ops.ones((2, 2)), embedding.distances()))
        2.0
    """

    def __init__(
        self,
        gamma: float = 0.1,
        distance_power: float = 1.0,
        communicability_power: float = 1.0,
    ) -> None:
        owner = type(self).__name__
        self.gamma = not_negative(owner, "gamma", gamma)
        self.distance_power = not_negative(owner, "distance_power", distance_power)
        self.communicability_power = not_negative(
            owner, "communicability_power", communicability_power
        )

    def forward(self, weights: Tensor, distances: Tensor) -> Tensor:
        """Return the cost, a scalar.

        Args:
            weights: Weights W from neuron i to neuron j, (units, units).
            distances: Distances D between the neurons, (units, units).
        """
        if weights.ndim != 2 or not weights.shape == distances.shape == weights.shape[::-1]:
            raise ShapeError(
                "WiringCost: expected weights and distances of shape (units, units), got "
                f"{weights.shape} and {distances.shape}"
            )
        weights = ops.astype(weights, float32) if weights.dtype.bits == 16 else weights
        cost = ops.abs(weights) * (1.0 - _identity_like(weights))
        if self.distance_power:
            cost = cost * _power(distances, self.distance_power)
        if self.communicability_power:
            cost = cost * _power(communicability(weights), self.communicability_power)
        return self.gamma * ops.sum(cost)


def _identity_like(matrix: Tensor) -> Tensor:
    """Return the identity matrix with the shape, dtype, backend and device of a matrix."""
    return ops.tril(ops.triu(ops.ones_like(matrix)))


def _power(x: Tensor, exponent: float) -> Tensor:
    """Return the power of nonnegative numbers, without infinite gradients at zero."""
    if exponent == 1.0:
        return x
    positive = x > _SMALLEST
    return ops.where(positive, ops.where(positive, x, 1.0) ** exponent, 0.0)
