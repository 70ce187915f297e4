"""Configs of the models that take any layers."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from ember_ml.configs.base import Config
from ember_ml.configs.blocks.base import Norm, Placement, check_layers
from ember_ml.configs.fields import Below1, Flag, Positive, Size
from ember_ml.configs.patterns import LayersField

PositionEmbedding = Literal["none", "learned", "sinusoidal"]
"""What is added to the embeddings; most mixers know the order without it."""
Pooling = Literal["last", "mean", "max"]


class StackFields(Config):
    """Layers of a width around a residual stream."""

    layers: LayersField
    hidden_size: Size = 128
    norm: Norm = "rms_norm"
    placement: Placement = "pre"
    dropout: Below1 = 0.0
    stochastic_depth: Below1 = 0.0
    max_length: Size | None = None

    @model_validator(mode="after")
    def _check_layers(self) -> Self:
        check_layers(self.layers, self.hidden_size)
        return self


class LanguageModelConfig(StackFields):
    """Tokens in, logits of the next ones out."""

    component: ClassVar[str] = "models/language_model"
    vocab_size: Size
    positions: PositionEmbedding = "none"
    tie_weights: Flag = False
    head_bias: Flag = False
    norm_eps: Positive | None = None


class AutoEncoderConfig(StackFields):
    """A sequence into one vector, and back."""

    component: ClassVar[str] = "models/autoencoder"
    vocab_size: Size
    decoder_layers: Size = 2


class _HeadFields(StackFields):
    """A model whose inputs are tokens or vectors."""

    vocab_size: Size | None = None
    in_features: Size | None = None


class SequenceClassifierConfig(_HeadFields):
    """A class for each sequence."""

    component: ClassVar[str] = "models/sequence_classifier"
    num_classes: Size
    pooling: Pooling = "mean"


class SequenceRegressorConfig(_HeadFields):
    """Numbers for each sequence, or for each of its positions."""

    component: ClassVar[str] = "models/sequence_regressor"
    out_features: Size = 1
    pooling: Literal["last", "mean", "max", "none"] = "last"


class ForecasterConfig(StackFields):
    """The next values of a series."""

    component: ClassVar[str] = "models/forecaster"
    features: Size = 1
    horizon: Size = 1
