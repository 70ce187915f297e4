"""Language models of recurrent layers."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.models.named import GRUModelConfig, LSTMModelConfig
from ember_ml.nn.models.repeated import BlockModel
from ember_ml.registry import register


@register("models/lstm", config=LSTMModelConfig)
class LSTMModel(BlockModel):
    """LSTM blocks.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        inner_size: the features of the states; as many as the width if not given.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Hochreiter and Schmidhuber, "Long short-term memory", 1997.

    Example:
        >>> nn.models.LSTMModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        inner_size: int | None = None,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/lstm",
            "inner_size": inner_size,
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


@register("models/gru", config=GRUModelConfig)
class GRUModel(BlockModel):
    """GRU blocks.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        inner_size: the features of the states; as many as the width if not given.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014.

    Example:
        >>> nn.models.GRUModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        inner_size: int | None = None,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/gru",
            "inner_size": inner_size,
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
