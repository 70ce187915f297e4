"""Language models of long convolutions."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.models.named import FFTConvModelConfig, HyenaModelConfig
from ember_ml.nn.models.repeated import BlockModel
from ember_ml.registry import register


@register("models/hyena", config=HyenaModelConfig)
class HyenaModel(BlockModel):
    """Hyena blocks.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        num_heads: the heads of multi-head Hyena; the plain one if not given.
        filter_order: the width of the networks that make the filters.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: taps of the long filters, which is the longest sequence; 1280 if not given.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Poli et al., "Hyena Hierarchy: Towards Larger Convolutional Language Models", 2023.

    Example:
        >>> nn.models.HyenaModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        num_heads: int | None = None,
        filter_order: int = 4,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/hyena",
            "num_heads": num_heads,
            "max_length": max_length or 1280,
            "filter_order": filter_order,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            norm,
            dropout,
            stochastic_depth,
            max_length,
            tie_weights,
        )


@register("models/fft_conv", config=FFTConvModelConfig)
class FFTConvModel(BlockModel):
    """Long convolutions, and channel mixers.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: taps of the long filters, which is the longest sequence; 1280 if not given.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Example:
        >>> nn.models.FFTConvModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/fft_conv",
            "max_length": max_length or 1280,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            norm,
            dropout,
            stochastic_depth,
            max_length,
            tie_weights,
        )
