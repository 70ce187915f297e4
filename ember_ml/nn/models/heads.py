"""Models that map a sequence to a class, to numbers, or to its continuation."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Unpack

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Below1, NormName, Size
from ember_ml.configs.patterns import LayersField, LayersLike
from ember_ml.nn.blocks.base import check_layers
from ember_ml.nn.blocks.residual import Placement
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.models.base import Model
from ember_ml.nn.models.pooling import extend_pool, initial_pool, pool
from ember_ml.nn.module import inference_mode
from ember_ml.nn.sequence_module import StatefulCall
from ember_ml.nn.states import State
from ember_ml.registry import register


class StackOptions(TypedDict, total=False):
    """Options of the layers that the models of this module share; see `SequenceModel`."""

    norm: NormName
    placement: Placement
    dropout: Below1
    stochastic_depth: Below1
    max_length: Size | None


class SequenceModel(Model):
    """Embedding of tokens or vectors, layers, and a linear head.

    Args:
        layers: A pattern such as "mamba swiglu", or a list of names, configs and modules.
        out_features: Number of outputs of the head.
        vocab_size: Number of tokens in the vocabulary, for sequences of tokens.
        in_features: Number of features of each position, for sequences of vectors.
        hidden_size: Number of features of each position inside the model.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        placement: Where norms are applied: to the input of each layer ("pre") or to the sum
            after it ("post").
        dropout: Dropout probability of each layer's output.
        stochastic_depth: Probability of skipping the last layer for an example during training.
            It increases linearly from 0 at the first layer.
        max_length: Maximum sequence length, for layers that need it.
    """

    default_loss = "mse"
    entry: Embedding | Dense
    check_config = staticmethod(check_layers)

    def __init__(
        self,
        layers: LayersLike,
        out_features: int,
        vocab_size: int | None,
        in_features: int | None,
        hidden_size: int,
        norm: NormName = "rms_norm",
        placement: Placement = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
    ) -> None:
        backbone = Backbone(
            layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length
        )
        if (vocab_size is None) == (in_features is None):
            raise ArgumentError(
                f"{type(self).__name__}: pass either vocab_size, for sequences of tokens, or "
                "in_features, for sequences of vectors"
            )
        if vocab_size:
            self.entry = Embedding(vocab_size, hidden_size, initializer=Normal(0.0, 1.0))
        else:
            self.entry = Dense(in_features or 1, hidden_size)
        self.backbone = backbone
        self.head = Dense(hidden_size, out_features)

    def features_of(
        self, x: Tensor, mask: Tensor | None, timespans: TensorLike | None, pooling: str = "none"
    ) -> Tensor:
        """Return the features of each position, (batch, time, hidden_size), or pooled ones.

        Args:
            x: Tokens of shape (batch, time), or vectors of shape (batch, time, features).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
            pooling: "last", "mean" or "max", for features of shape (batch, hidden_size); "none"
                for those of each position.
        """
        y = self._embed(x)
        if pooling == "none":
            return self.backbone(y, mask, timespans)
        return self.backbone.pooled(y, mask, timespans, pooling)

    def _embed(self, x: Tensor) -> Tensor:
        """Return the input of the layers: (batch, time, hidden_size)."""
        takes_tokens = isinstance(self.entry, Embedding)
        if x.ndim != (2 if takes_tokens else 3):
            shape = "tokens of shape (batch, time)" if takes_tokens else "(batch, time, features)"
            raise ShapeError(f"{type(self).__name__}: expected {shape}, got {x.shape}")
        return self.entry(x)


class PooledModel(StatefulCall, SequenceModel):
    """Model whose head reads pooled features, at once or part by part.

    Subclasses set `pooling`: "last", "mean", "max", or "none" to map each position by itself.
    """

    pooling: str

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Return the outputs of the head; with a state, also the state after the last position.

        Args:
            x: Tokens of shape (batch, time), or vectors of shape (batch, time, in_features).
            mask: Padding mask of shape (batch, time), False at padding. With a state, the padding
                of a sequence must come last; it does not change the state.
            timespans: Time since the previous position, for layers that use it.
            state: State before the first position. The outputs are then those for all positions so
                far. Default: the start of the sequence.
        """
        if state is None:
            return self.head(self.features_of(x, mask, timespans, self.pooling))
        inner, pooled = state
        y, inner = self.backbone(self._embed(x), mask, timespans, state=inner)
        y, pooled = extend_pool(y, mask, self.pooling, pooled)
        return self.head(y), (inner, pooled)

    def initial_state(self, batch: int) -> State:
        """Return the states of the layers and of the pooling before the first position.

        Args:
            batch: Batch size.
        """
        weight = self.head.weight
        pooled = initial_pool(self.pooling, batch, weight.shape[1], weight)
        return self.backbone.initial_state(batch), pooled

    def step(
        self, x: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the outputs after one more position, (batch, outputs), and the next state.

        Args:
            x: Tokens of shape (batch,), or vectors of shape (batch, in_features).
            state: The result of `initial_state`, of the last step or of a call with a state.
            timespan: Time since the previous position, for layers that use it.
        """
        inner, pooled = state
        y, inner = self.backbone.step(self.entry(x), inner, timespan)
        y, pooled = extend_pool(y[:, None], None, self.pooling, pooled)
        return self.head(y[:, 0] if self.pooling == "none" else y), (inner, pooled)


@register("models/sequence_classifier", aliases=["classifier"])
class SequenceClassifier(PooledModel):
    """Classifier of sequences.

    Args:
        layers: A pattern such as "mamba swiglu", or a list of names, configs and modules.
        num_classes: Number of classes.
        vocab_size: Number of tokens in the vocabulary, for sequences of tokens.
        in_features: Number of features of each position, for sequences of vectors.
        hidden_size: Number of features of each position inside the model.
        pooling: Positions that the head reads: the "last" one, their "mean" or their "max".
        options: `norm`, `placement`, `dropout`, `stochastic_depth` and `max_length`, as in
            `LanguageModel`.

    Shape: (batch, time) of integers, or (batch, time, in_features) -> (batch, num_classes).

    Example:
        >>> model = nn.models.SequenceClassifier("gru swiglu", 5, in_features=3, hidden_size=8)
        >>> model(ops.ones((2, 7, 3))).shape
        (2, 5)
    """

    default_loss = "cross_entropy"

    def __init__(
        self,
        layers: LayersField,
        num_classes: Size,
        vocab_size: Size | None = None,
        in_features: Size | None = None,
        hidden_size: Size = 128,
        pooling: Literal["last", "mean", "max"] = "mean",
        **options: Unpack[StackOptions],
    ) -> None:
        super().__init__(layers, num_classes, vocab_size, in_features, hidden_size, **options)
        self.pooling = pooling


@register("models/sequence_regressor", aliases=["regressor"])
class SequenceRegressor(PooledModel):
    """Regression of one or several numbers per sequence, or per position.

    Args:
        layers: A pattern such as "mamba swiglu", or a list of names, configs and modules.
        out_features: Number of outputs.
        vocab_size: Number of tokens in the vocabulary, for sequences of tokens.
        in_features: Number of features of each position, for sequences of vectors.
        hidden_size: Number of features of each position inside the model.
        pooling: Positions that the head reads: the "last" one, their "mean" or their "max"; with
            "none", it maps each position by itself.
        options: `norm`, `placement`, `dropout`, `stochastic_depth` and `max_length`, as in
            `LanguageModel`.

    Shape: (batch, time) of integers, or (batch, time, in_features) -> (batch, out_features), or
    (batch, time, out_features) with pooling="none".

    Example:
        >>> model = nn.models.SequenceRegressor("cfc", in_features=3, hidden_size=8, pooling="none")
        >>> model(ops.ones((2, 7, 3)), timespans=ops.ones((2, 7))).shape
        (2, 7, 1)
    """

    def __init__(
        self,
        layers: LayersField,
        out_features: Size = 1,
        vocab_size: Size | None = None,
        in_features: Size | None = None,
        hidden_size: Size = 128,
        pooling: Literal["last", "mean", "max", "none"] = "last",
        **options: Unpack[StackOptions],
    ) -> None:
        super().__init__(layers, out_features, vocab_size, in_features, hidden_size, **options)
        self.pooling = pooling


@register("models/forecaster")
class Forecaster(SequenceModel):
    """Forecast of the next values of a series, all at once.

    The series is normalized to mean 0 and standard deviation 1 first, and the forecast is scaled
    back, so that predictions do not depend on the level of a series.

    Args:
        layers: A pattern such as "mamba swiglu", or a list of names, configs and modules.
        features: Number of values per position.
        horizon: Number of positions to predict.
        hidden_size: Number of features of each position inside the model.
        options: `norm`, `placement`, `dropout`, `stochastic_depth` and `max_length`, as in
            `LanguageModel`.

    Shape: (batch, time, features) -> (batch, horizon, features).

    Reference: Kim et al., "Reversible Instance Normalization for Accurate Time-Series Forecasting
    against Distribution Shift", 2022.

    Example:
        >>> nn.models.Forecaster("gru", 2, 4, hidden_size=8)(ops.ones((3, 7, 2))).shape
        (3, 4, 2)
    """

    def __init__(
        self,
        layers: LayersField,
        features: Size = 1,
        horizon: Size = 1,
        hidden_size: Size = 128,
        **options: Unpack[StackOptions],
    ) -> None:
        super().__init__(layers, features * horizon, None, features, hidden_size, **options)
        self.horizon = horizon

    def forward(
        self, x: Tensor, mask: Tensor | None = None, timespans: TensorLike | None = None
    ) -> Tensor:
        """Return the next values: (batch, horizon, features).

        Args:
            x: Tensor of shape (batch, time, features).
            mask: Padding mask of shape (batch, time), False at padding.
            timespans: Time since the previous position, for layers that use it.
        """
        if x.ndim != 3:
            raise ShapeError(
                f"{type(self).__name__}: expected (batch, time, features), got {x.shape}"
            )
        mean = ops.expand_dims(pool(x, mask, "mean"), 1)
        deviation = ops.sqrt(ops.expand_dims(pool((x - mean) ** 2, mask, "mean"), 1) + 1e-5)
        ahead = self.head(self.features_of((x - mean) / deviation, mask, timespans, "last"))
        return ops.reshape(ahead, (x.shape[0], self.horizon, x.shape[2])) * deviation + mean

    def forecast(self, x: Tensor, steps: int) -> Tensor:
        """Return any number of next values: (batch, steps, features).

        Beyond the horizon, the model continues from its own forecasts.

        Args:
            x: Tensor of shape (batch, time, features).
            steps: Number of positions to predict.

        Example:
            >>> nn.models.Forecaster("gru", horizon=4, hidden_size=8).forecast(
            ...     ops.ones((3, 7, 1)), 9
            ... ).shape
            (3, 9, 1)
        """
        if steps < 1:
            raise ArgumentError(f"{type(self).__name__}.forecast: steps={steps} must be at least 1")
        length, series = x.shape[1], x
        with inference_mode(self.modules()):
            for _ in range(-(-steps // self.horizon)):
                series = ops.concat([series, self(series[:, -length:])], axis=1)
        return series[:, length : length + steps]
