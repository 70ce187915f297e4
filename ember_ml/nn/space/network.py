"""The recurrent connections of neurons in space: their cost, masks and pruning."""

from __future__ import annotations

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import ComponentLike
from ember_ml.nn.auxiliary_losses import is_collecting, report_loss
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.space.embedding import SpatialEmbedding
from ember_ml.nn.space.pruning import Sparsity, pruning_mask, sparsity
from ember_ml.nn.space.wiring_cost import WiringCost
from ember_ml.registry import build

COST_NAME = "wiring_cost"
"""Name of the cost in the records of a trainer."""


class SpatialNetwork(Module):
    """Base of layers whose neurons have positions in space.

    Subclasses set `embedding` and `wiring_cost`, and implement `recurrent_parameter` and
    `connection_mask`. They call `report_cost` in `forward`.
    """

    embedding: SpatialEmbedding
    wiring_cost: WiringCost

    @property
    def recurrent_parameter(self) -> Parameter:
        """Weights of the recurrent connections before pruning, (units, units)."""
        raise NotImplementedError(f"{type(self).__name__} does not define recurrent_parameter")

    @property
    def connection_mask(self) -> Buffer:
        """Mask of the recurrent connections, (units, units): 0 for pruned ones, otherwise 1."""
        raise NotImplementedError(f"{type(self).__name__} does not define connection_mask")

    @property
    def positions(self) -> Parameter | Buffer:
        """Coordinates of the neurons, (units, dimensions)."""
        return self.embedding.positions

    def distances(self) -> Tensor:
        """Return the distances between the neurons, (units, units)."""
        return self.embedding.distances()

    def recurrent_weight(self) -> Tensor:
        """Return the weights of the recurrent connections, (units, units), zero if pruned.

        Row i has the weights of the connections into neuron i.
        """
        return self.recurrent_parameter * self.connection_mask

    def cost(self) -> Tensor:
        """Return the wiring cost of the recurrent connections, a scalar."""
        return self.wiring_cost(self.recurrent_weight().T, self.distances())

    def report_cost(self) -> None:
        """Report the cost to the trainer, in training mode and if it is not always zero."""
        if self.training and self.wiring_cost.gamma and is_collecting():
            report_loss(self.cost(), COST_NAME)

    def prune(self, *, fraction: float | None = None, threshold: float | None = None) -> Sparsity:
        """Remove weak recurrent connections for good, and return the sparsity.

        Further training does not bring them back. Connections that were pruned before stay so.

        Args:
            fraction: Fraction of all recurrent weights that are zero afterwards, at least: those
                with the smallest absolute values.
            threshold: Absolute value below which weights are removed. Pass either this or
                `fraction`.

        Example:
            >>> layer = nn.layers.SpatialRNN(10)
            >>> print(layer.prune(fraction=0.8))
            20 of 100 connections (80.0% sparse)
        """
        mask, weight = self.connection_mask, self.recurrent_parameter
        kept = pruning_mask(weight * mask, fraction=fraction, threshold=threshold)
        mask.assign(mask * kept)
        weight.assign(weight * mask)
        return self.sparsity()

    def sparsity(self) -> Sparsity:
        """Return the number of recurrent connections that are not zero."""
        return sparsity(self.recurrent_weight())


def embedding_of(owner: Module, embedding: ComponentLike | None, units: int) -> SpatialEmbedding:
    """Return the embedding of a layer's neurons.

    Args:
        owner: The layer, whose class errors name.
        embedding: A name, a config, a `{"type": ...}` mapping or an embedding. None: a grid.
        units: Number of neurons.
    """
    if embedding is None:
        return SpatialEmbedding(units)
    built = build("embeddings", embedding)
    if not isinstance(built, SpatialEmbedding):
        raise ArgumentTypeError(
            f"{type(owner).__name__}: embedding must be a SpatialEmbedding, not {built!r:.60}"
        )
    if built.units != units:
        raise ArgumentError(
            f"{type(owner).__name__}: the embedding has positions of {built.units} neurons, but "
            f"the layer has {units}"
        )
    return built


def all_connections(units: int) -> Buffer:
    """Return the mask of a network before pruning, (units, units).

    Args:
        units: Number of neurons.
    """
    return Buffer(ops.ones((units, units)))
