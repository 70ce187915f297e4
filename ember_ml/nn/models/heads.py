"""Models that say something of a sequence: a class, numbers, or how it goes on."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.models.base import (
    ForecasterConfig,
    SequenceClassifierConfig,
    SequenceRegressorConfig,
)
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.models.base import Model
from ember_ml.nn.module import Module, inference_mode
from ember_ml.registry import register


class _SequenceModel(Model):
    """Tokens or vectors in, layers, and a linear map of what they give."""

    default_loss = "mse"
    entry: Module

    def __init__(
        self, vocab_size: int | None, in_features: int | None, out_features: int, body: Backbone
    ) -> None:
        if (vocab_size is None) == (in_features is None):
            raise ArgumentError(
                f"{type(self).__name__}: give vocab_size, for sequences of tokens, or in_features, "
                "for sequences of vectors"
            )
        width = body.features
        if vocab_size:
            self.entry = Embedding(vocab_size, width, initializer=Normal(0.0, 1.0))
        else:
            self.entry = Dense(in_features or 1, width)
        self.backbone = body
        self.head = Dense(width, out_features)

    def features_of(self, x: Tensor, mask: Tensor | None, timespans: Any) -> Tensor:
        """The features of each position."""
        wanted = 2 if isinstance(self.entry, Embedding) else 3
        if x.ndim != wanted:
            shape = "(batch, time) of tokens" if wanted == 2 else "(batch, time, features)"
            raise ShapeError(f"{type(self).__name__} takes {shape}, not {x.shape}")
        return self.backbone(self.entry(x), mask, timespans)


def pooled(x: Tensor, mask: Tensor | None, how: str) -> Tensor:
    """(batch, time, features) -> (batch, features), without the padding.

    Args:
        x: the features of the positions.
        mask: (batch, time), False where there is padding.
        how: "last", "mean" or "max".
    """
    if mask is None:
        return x[:, -1] if how == "last" else getattr(ops, how)(x, axis=1)
    shown = ops.expand_dims(mask, 2)
    if how == "max":
        most = ops.max(ops.where(shown, x, -float("inf")), axis=1)
        return ops.where(ops.any(shown, axis=1), most, 0.0)
    if how == "mean":
        count = ops.maximum(ops.sum(shown.astype(x.dtype), axis=1), 1.0)
        return ops.sum(ops.where(shown, x, 0.0), axis=1) / count
    places = ops.cumsum(ops.ones_like(mask, dtype="int64"), axis=1)
    last = ops.max(ops.where(mask, places, 0), axis=1, keepdims=True)
    return ops.sum(ops.where(ops.expand_dims(places == last, 2), x, 0.0), axis=1)


@register("models/sequence_classifier", config=SequenceClassifierConfig, aliases=["classifier"])
class SequenceClassifier(_SequenceModel):
    """A class for each sequence.

    Args:
        layers: a pattern such as "mamba swiglu", or a list of names, configs and modules.
        num_classes: how many classes there are.
        vocab_size: how many tokens there are, if the sequences are of tokens.
        in_features: the features of a position, if the sequences are of vectors.
        hidden_size: the width of the model.
        pooling: what the class is read from: the "last" position, the "mean" or the "max".
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers.
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves the last layer out.
        max_length: the longest sequence, for the layers that need to know.

    Shape: (batch, time) of integers, or (batch, time, in_features) -> (batch, num_classes).

    Example:
        >>> model = nn.models.SequenceClassifier("gru swiglu", 5, in_features=3, hidden_size=8)
        >>> model(ops.ones((2, 7, 3))).shape
        (2, 5)
    """

    default_loss = "cross_entropy"

    def __init__(
        self,
        layers: Any,
        num_classes: int,
        vocab_size: int | None = None,
        in_features: int | None = None,
        hidden_size: int = 128,
        pooling: str = "mean",
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
    ) -> None:
        body = Backbone(layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length)
        super().__init__(vocab_size, in_features, num_classes, body)
        self.pooling = pooling

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The logits of the classes.

        Args:
            x: tokens or vectors.
            mask: (batch, time), False where there is padding.
            timespans: the time since the position before, for the layers that mind it.
        """
        return self.head(pooled(self.features_of(x, mask, timespans), mask, self.pooling))


@register("models/sequence_regressor", config=SequenceRegressorConfig, aliases=["regressor"])
class SequenceRegressor(_SequenceModel):
    """Numbers for each sequence, or for each of its positions.

    Args:
        layers: a pattern such as "mamba swiglu", or a list of names, configs and modules.
        out_features: how many numbers.
        vocab_size: how many tokens there are, if the sequences are of tokens.
        in_features: the features of a position, if the sequences are of vectors.
        hidden_size: the width of the model.
        pooling: what they are read from: the "last" position, the "mean", the "max"; with "none",
            each position has its own.
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers.
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves the last layer out.
        max_length: the longest sequence, for the layers that need to know.

    Shape: (batch, time) of integers, or (batch, time, in_features) -> (batch, out_features), or
    (batch, time, out_features) with pooling="none".

    Example:
        >>> model = nn.models.SequenceRegressor("cfc", in_features=3, hidden_size=8, pooling="none")
        >>> model(ops.ones((2, 7, 3)), timespans=ops.ones((2, 7))).shape
        (2, 7, 1)
    """

    def __init__(
        self,
        layers: Any,
        out_features: int = 1,
        vocab_size: int | None = None,
        in_features: int | None = None,
        hidden_size: int = 128,
        pooling: str = "last",
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
    ) -> None:
        body = Backbone(layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length)
        super().__init__(vocab_size, in_features, out_features, body)
        self.pooling = pooling

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The numbers.

        Args:
            x: tokens or vectors.
            mask: (batch, time), False where there is padding.
            timespans: the time since the position before, for the layers that mind it.
        """
        y = self.features_of(x, mask, timespans)
        return self.head(y if self.pooling == "none" else pooled(y, mask, self.pooling))


@register("models/forecaster", config=ForecasterConfig)
class Forecaster(_SequenceModel):
    """The next values of a series, all at once.

    The series is brought to mean 0 and deviation 1 before, and the forecast back: what is learned
    does not depend on the level of a series.

    Args:
        layers: a pattern such as "mamba swiglu", or a list of names, configs and modules.
        features: how many values a position has.
        horizon: how many positions ahead it looks.
        hidden_size: the width of the model.
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers.
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves the last layer out.
        max_length: the longest series, for the layers that need to know.

    Shape: (batch, time, features) -> (batch, horizon, features).

    Reference: Kim et al., "Reversible Instance Normalization for Accurate Time-Series Forecasting
    against Distribution Shift", 2022.

    Example:
        >>> nn.models.Forecaster("gru", 2, 4, hidden_size=8)(ops.ones((3, 7, 2))).shape
        (3, 4, 2)
    """

    def __init__(
        self,
        layers: Any,
        features: int = 1,
        horizon: int = 1,
        hidden_size: int = 128,
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
    ) -> None:
        body = Backbone(layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length)
        super().__init__(None, features, features * horizon, body)
        self.horizon = horizon

    def forward(self, x: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The next values.

        Args:
            x: (batch, time, features).
            mask: (batch, time), False where there is padding.
            timespans: the time since the position before, for the layers that mind it.
        """
        if x.ndim != 3:
            raise ShapeError(f"{type(self).__name__} takes (batch, time, features), not {x.shape}")
        mean = ops.expand_dims(pooled(x, mask, "mean"), 1)
        spread = ops.sqrt(ops.expand_dims(pooled((x - mean) ** 2, mask, "mean"), 1) + 1e-5)
        y = self.features_of((x - mean) / spread, mask, timespans)
        ahead = self.head(pooled(y, mask, "last"))
        return ops.reshape(ahead, (x.shape[0], self.horizon, x.shape[2])) * spread + mean

    def forecast(self, x: Tensor, steps: int) -> Tensor:
        """So many values ahead, from its own forecasts where they are beyond the horizon.

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
