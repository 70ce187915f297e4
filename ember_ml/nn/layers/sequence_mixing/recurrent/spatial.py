"""Elman recurrent layer whose neurons have positions in space."""

from __future__ import annotations

import math
from typing import Any

from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import (
    ActivationField,
    ComponentLike,
    EmbeddingField,
    NonNegative,
    Size,
)
from ember_ml.nn import activations
from ember_ml.nn.layers.sequence_mixing.base import State
from ember_ml.nn.layers.sequence_mixing.recurrent.base import Recurrent
from ember_ml.nn.layers.sequence_mixing.recurrent.cells import Timespan
from ember_ml.nn.layers.sequence_mixing.recurrent.gated import GateWeights, RNNCell
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.space.network import SpatialNetwork, all_connections, embedding_of
from ember_ml.nn.space.wiring_cost import WiringCost
from ember_ml.registry import register


class MaskedRNNCell(RNNCell):
    r"""Elman recurrent cell whose recurrent connections can be pruned.

    .. math:: h' = \phi(W_{ih} x + b_{ih} + (M \odot W_{hh}) h + b_{hh})

    Args:
        in_features: Number of input features.
        hidden_size: Number of features of the hidden state h.
        activation: The activation function phi. Default: "relu".

    The initial recurrent weights are orthogonal, and with ReLU scaled by sqrt(2): the activity of
    half of the neurons then carries the state on.

    Shape: (batch, in_features), h (batch, hidden_size) -> (batch, hidden_size), the new h.
    """

    def __init__(
        self, in_features: int, hidden_size: int, activation: ComponentLike = "relu"
    ) -> None:
        super().__init__(in_features, hidden_size, activation=activation)
        if self.activation is activations.relu or isinstance(self.activation, activations.ReLU):
            self.weight_hh.assign(self.weight_hh * math.sqrt(2.0))
        self.mask = all_connections(hidden_size)

    def gather(self, timespan: Timespan | None) -> GateWeights:
        """Return the weights and biases, with zeros for pruned connections."""
        weights = super().gather(timespan)
        return weights._replace(weight_hh=weights.weight_hh * self.mask)


@register("layers/spatial_rnn")
class SpatialRNN(SpatialNetwork, Recurrent):
    r"""Elman recurrent layer whose neurons have positions in space and pay for connections.

    .. math::
        h_t = \phi(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})

        L = \gamma \sum_{ij} |W_{ij}| \, D_{ij}^p \, C_{ij}^c

    In training mode the cost L of the recurrent weights, distances D and communicabilities C is
    added to the loss (`nn.space.WiringCost`). A trainer records it as "wiring_cost".

    Args:
        features: Number of input features.
        hidden_size: Number of neurons. Default: `features`.
        embedding: Positions of the neurons: a `nn.space.SpatialEmbedding` or its config. Default:
            a grid in three dimensions.
        gamma: Factor of the cost; 0 disables it. Default: 0.1.
        distance_power: Exponent p of the distances. Default: 1.
        communicability_power: Exponent c of the communicability. Default: 1.
        activation: The activation function phi. Default: "relu".

    Shape: (batch, time, features) -> (batch, time, hidden_size). The state is
    (batch, hidden_size).

    Reference: Achterberg et al., "Spatially embedded recurrent neural networks reveal widespread
    links between structural and functional neuroscience findings", 2023.

    Example:
        >>> layer = nn.layers.SpatialRNN(3, 8)
        >>> layer(ops.ones((2, 5, 3))).shape
        (2, 5, 8)
        >>> layer.positions.shape
        (8, 3)
    """

    def __init__(
        self,
        features: Size,
        hidden_size: Size | None = None,
        embedding: EmbeddingField = None,
        gamma: NonNegative = 0.1,
        distance_power: NonNegative = 1.0,
        communicability_power: NonNegative = 1.0,
        activation: ActivationField = "relu",
    ) -> None:
        units = hidden_size or features
        self.embedding = embedding_of(self, embedding, units)
        self.wiring_cost = WiringCost(gamma, distance_power, communicability_power)
        super().__init__(MaskedRNNCell(features, units, activation))

    @property
    def _cell(self) -> MaskedRNNCell:
        cell = self.cells[0]
        assert isinstance(cell, MaskedRNNCell)
        return cell

    @property
    def recurrent_parameter(self) -> Parameter:
        """Weights of the recurrent connections before pruning, (hidden_size, hidden_size)."""
        return self._cell.weight_hh

    @property
    def connection_mask(self) -> Buffer:
        """Mask of the recurrent connections: 0 for pruned ones, otherwise 1."""
        return self._cell.mask

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the outputs; with a state, also the state after the last position.

        Args:
            x: Input, (batch, time, features) or (time, features).
            mask: (batch, time), False for padding.
            timespans: Ignored.
            state: State before the first position. Default: zeros.
        """
        self.report_cost()
        return super().forward(x, mask, timespans, state=state)
