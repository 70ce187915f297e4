"""Configs of dense layers and what goes with them."""

from __future__ import annotations

from typing import ClassVar

from ember_ml.configs.base import Config
from ember_ml.configs.fields import (
    ActivationField,
    Below1,
    Count,
    Flag,
    InitializerField,
    OptionalActivationField,
    Size,
    Sizes,
)


class DenseConfig(Config):
    """A linear map of the features, with a bias and an activation if wanted."""

    component: ClassVar[str] = "layers/dense"
    in_features: Size
    out_features: Size
    bias: Flag = True
    activation: OptionalActivationField = None
    kernel_initializer: InitializerField = "glorot"
    bias_initializer: InitializerField = "zeros"


class MLPConfig(Config):
    """Dense layers with an activation between them."""

    component: ClassVar[str] = "layers/mlp"
    in_features: Size
    hidden_features: Sizes | None = None
    out_features: Size | None = None
    activation: ActivationField = "gelu"
    bias: Flag = True
    dropout: Below1 = 0.0


class EmbeddingConfig(Config):
    """A vector for each of a number of symbols."""

    component: ClassVar[str] = "layers/embedding"
    num_embeddings: Size
    features: Size
    padding_index: Count | None = None
    initializer: InitializerField = "normal"


class DropoutConfig(Config):
    """Zeros at random, in training."""

    component: ClassVar[str] = "layers/dropout"
    rate: Below1 = 0.5
