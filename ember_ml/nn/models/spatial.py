"""Recurrent networks in space, from sequences of vectors to classes or numbers."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import EmberTensor, Tensor
from ember_ml.configs.fields import (
    ActivationField,
    EmbeddingField,
    NonNegative,
    Positive,
    Probability,
    Size,
    SurrogateField,
)
from ember_ml.nn.layers.channel_mixing import Dense
from ember_ml.nn.layers.sequence_mixing.recurrent import SpatialRNN
from ember_ml.nn.layers.sequence_mixing.spiking import LeakyIntegrator, SpatialLIF
from ember_ml.nn.models.base import Model
from ember_ml.nn.models.pooling import extend_pool, initial_pool, pool
from ember_ml.nn.module import Module
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.sequence_module import (
    StatefulCall,
    extend_all,
    initial_states,
    run_all,
    step_all,
)
from ember_ml.nn.space.embedding import SpatialEmbedding
from ember_ml.nn.space.network import SpatialNetwork
from ember_ml.nn.space.pruning import Sparsity
from ember_ml.nn.states import State
from ember_ml.registry import register

Pooling: TypeAlias = Literal["last", "mean", "max", "none"]
"""Positions whose outputs a model returns: one or a mean of them, or all with "none"."""


class SpatialModel(StatefulCall, Model):
    """Base of the models of one recurrent layer in space and a read-out.

    The outputs of the read-out are pooled over time: "last", "mean", "max" or "none".

    Subclasses set the attributes and implement `stages`.

    Attributes:
        network: Recurrent layer of neurons in space.
        out_features: Number of outputs of the model.
        pooling: Positions whose outputs are returned.
    """

    default_loss = "cross_entropy"
    network: SpatialNetwork
    out_features: int
    pooling: Pooling

    @property
    def stages(self) -> tuple[Module, ...]:
        """Modules from the inputs to the outputs of each position, in order."""
        raise NotImplementedError(f"{type(self).__name__} does not define stages")

    def forward(self, x: Tensor, mask: Tensor | None = None, *, state: State | None = None) -> Any:
        """Return the outputs; with a state, also the state after the last position.

        Args:
            x: Inputs of shape (batch, time, in_features).
            mask: Padding mask of shape (batch, time), False at padding. With a state, the padding
                of a sequence must come last; it does not change the state.
            state: State before the first position. The outputs are then those for all positions so
                far. Default: the start of the sequence.
        """
        if not isinstance(x, EmberTensor) or x.ndim != 3:
            shape = x.shape if isinstance(x, EmberTensor) else type(x).__name__
            raise ShapeError(
                f"{type(self).__name__}: expected (batch, time, in_features), got {shape}"
            )
        if state is None:
            y = run_all(self.stages, x, mask)
            return y if self.pooling == "none" else pool(self._checked(y), mask, self.pooling)
        inner, pooled = self._parts(state)
        y, inner = extend_all(self.stages, x, inner, mask)
        y, pooled = extend_pool(y, mask, self.pooling, pooled)
        return y, (inner, pooled)

    def _parts(self, state: State) -> tuple[State, State]:
        """Return the states of the modules and of the pooling."""
        if not isinstance(state, tuple) or len(state) != 2:
            raise ArgumentError(
                f"{type(self).__name__}: the state must be the result of `initial_state`, of the "
                f"last step or of a call with a state, not {state!r:.60}"
            )
        return state

    def _checked(self, y: Tensor) -> Tensor:
        if not y.shape[1]:
            raise ShapeError(
                f"{type(self).__name__}: pooling={self.pooling!r} needs at least one position, got "
                f"a sequence of length 0"
            )
        return y

    def initial_state(self, batch: int) -> State:
        """Return the states of the neurons and of the pooling before the first position.

        Args:
            batch: Batch size.
        """
        like = self.network.recurrent_parameter
        pooled = initial_pool(self.pooling, batch, self.out_features, like)
        return initial_states(self.stages, batch), pooled

    def step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the outputs after one more position, (batch, out_features), and the next state.

        Args:
            x: Inputs of shape (batch, in_features).
            state: The result of `initial_state`, of the last step or of a call with a state.
        """
        inner, pooled = self._parts(state)
        y, inner = step_all(self.stages, x, inner)
        y, pooled = extend_pool(y[:, None], None, self.pooling, pooled)
        return (y[:, 0] if self.pooling == "none" else y), (inner, pooled)

    @property
    def embedding(self) -> SpatialEmbedding:
        """Positions of the neurons, with their distances."""
        return self.network.embedding

    @property
    def positions(self) -> Parameter | Buffer:
        """Coordinates of the neurons, (hidden_size, dimensions)."""
        return self.network.positions

    def distances(self) -> Tensor:
        """Return the distances between the neurons, (hidden_size, hidden_size)."""
        return self.network.distances()

    def recurrent_weight(self) -> Tensor:
        """Return the recurrent weights, zero if pruned; row i has those into neuron i."""
        return self.network.recurrent_weight()

    def cost(self) -> Tensor:
        """Return the wiring cost of the recurrent connections, a scalar."""
        return self.network.cost()

    def prune(self, *, fraction: float | None = None, threshold: float | None = None) -> Sparsity:
        """Remove weak recurrent connections for good, and return the sparsity.

        Args:
            fraction: Fraction of all recurrent weights that are zero afterwards, at least: those
                with the smallest absolute values.
            threshold: Absolute value below which weights are removed. Pass either this or
                `fraction`.
        """
        return self.network.prune(fraction=fraction, threshold=threshold)

    def sparsity(self) -> Sparsity:
        """Return the number of recurrent connections that are not zero."""
        return self.network.sparsity()


@register("models/sernn")
class SeRNN(SpatialModel):
    """Spatially embedded recurrent network (seRNN): rate neurons that pay for their connections.

    A `SpatialRNN` layer and a linear read-out. In training mode the wiring cost of the recurrent
    weights is added to the loss; a trainer records it as "wiring_cost".

    Args:
        in_features: Number of input features.
        out_features: Number of outputs, such as classes.
        hidden_size: Number of neurons. Default: 100.
        embedding: Positions of the neurons: a `nn.space.SpatialEmbedding` or its config. Default:
            a grid in three dimensions, 5 x 5 x 4 for 100 neurons.
        gamma: Factor of the wiring cost; 0 disables it. Default: 0.1.
        distance_power: Exponent of the distances. Default: 1.
        communicability_power: Exponent of the communicability. Default: 1.
        activation: Activation function of the neurons. Default: "relu".
        pooling: Positions whose outputs are returned: the "last" one, their "mean" or their "max";
            all of them with "none". Default: "last".

    Shape: (batch, time, in_features) -> (batch, out_features), or (batch, time, out_features) with
    pooling="none".

    Reference: Achterberg et al., "Spatially embedded recurrent neural networks reveal widespread
    links between structural and functional neuroscience findings", 2023.

    Example:
        >>> model = nn.models.SeRNN(8, 4)
        >>> model(ops.ones((2, 50, 8))).shape
        (2, 4)
        >>> model.positions.shape
        (100, 3)
    """

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        hidden_size: Size = 100,
        embedding: EmbeddingField = None,
        gamma: NonNegative = 0.1,
        distance_power: NonNegative = 1.0,
        communicability_power: NonNegative = 1.0,
        activation: ActivationField = "relu",
        pooling: Pooling = "last",
    ) -> None:
        self.network = SpatialRNN(
            in_features,
            hidden_size,
            embedding,
            gamma,
            distance_power,
            communicability_power,
            activation,
        )
        self.readout = Dense(hidden_size, out_features)
        self.out_features = out_features
        self.pooling = pooling

    @property
    def stages(self) -> tuple[Module, ...]:
        """The recurrent layer and the linear read-out."""
        return self.network, self.readout


@register("models/sersnn")
class SeRSNN(SpatialModel):
    """Spatially embedded recurrent spiking network (seRSNN).

    A linear layer turns inputs into currents of the spiking neurons of a `SpatialLIF` layer. Spikes
    arrive at distant neurons later. A second linear layer and leaky integrators read them out. In
    training mode the wiring cost of the recurrent weights is added to the loss; a trainer records
    it as "wiring_cost".

    Args:
        in_features: Number of input features.
        out_features: Number of outputs, such as classes.
        hidden_size: Number of neurons. Default: 100.
        embedding: Positions of the neurons: a `nn.space.SpatialEmbedding` or its config. Learnable
            positions learn through the cost and through the delays. Default: a grid in three
            dimensions, 5 x 5 x 4 for 100 neurons.
        gamma: Factor of the wiring cost; 0 disables it. Default: 0.02.
        speed: Conduction speed of the axons, in units of distance per unit of time. Default: 1.
        dt: Duration of a time step. Default: 1.
        beta: Decay of the voltage in one step, 0 to 1. Default: 0.9.
        threshold: Voltage above which a neuron fires, above 0. Default: 1.
        surrogate: Surrogate gradient of spikes, from `ember_ml.nn.surrogates`. Default: "atan".
        readout_beta: Decay of the voltage of the leaky integrators. Default: 0.9.
        pooling: Positions whose outputs are returned: the "last" one, their "mean" or their "max";
            all of them with "none". Default: "last".

    Shape: (batch, time, in_features) -> (batch, out_features), or (batch, time, out_features) with
    pooling="none".

    Example:
        >>> model = nn.models.SeRSNN(8, 4, speed=2.0)
        >>> model(ops.ones((2, 50, 8))).shape
        (2, 4)
        >>> model.network.max_delay
        4
    """

    network: SpatialLIF

    def __init__(
        self,
        in_features: Size,
        out_features: Size,
        hidden_size: Size = 100,
        embedding: EmbeddingField = None,
        gamma: NonNegative = 0.02,
        speed: Positive = 1.0,
        dt: Positive = 1.0,
        beta: Probability = 0.9,
        threshold: Positive = 1.0,
        surrogate: SurrogateField = "atan",
        readout_beta: Probability = 0.9,
        pooling: Pooling = "last",
    ) -> None:
        self.entry = Dense(in_features, hidden_size)
        self.network = SpatialLIF(
            hidden_size,
            embedding,
            gamma,
            speed=speed,
            dt=dt,
            beta=beta,
            threshold=threshold,
            surrogate=surrogate,
        )
        self.readout = Dense(hidden_size, out_features)
        self.integrator = LeakyIntegrator(out_features, readout_beta)
        self.out_features = out_features
        self.pooling = pooling

    @property
    def stages(self) -> tuple[Module, ...]:
        """The linear layer of the inputs, the spiking neurons and the read-out."""
        return self.entry, self.network, self.readout, self.integrator
