"""Language models whose cost grows with the length alone, or nearly."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.models.named import (
    FFTConvModelConfig,
    GRUModelConfig,
    HyenaModelConfig,
    LSTMModelConfig,
    MambaModelConfig,
    RWKVModelConfig,
)
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
        shared = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            shared,
            max_length=max_length,
            tie_weights=tie_weights,
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
        shared = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            shared,
            max_length=max_length,
            tie_weights=tie_weights,
        )


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
        shared = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            shared,
            max_length=max_length,
            tie_weights=tie_weights,
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
        shared = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            shared,
            max_length=max_length,
            tie_weights=tie_weights,
        )


@register("models/mamba", config=MambaModelConfig)
class MambaModel(BlockModel):
    """Mamba blocks.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        d_state: the numbers of state of each channel.
        d_conv: taps of the short filters.
        expand: channels inside, as a multiple of the width.
        version: 1, or 2 for Mamba-2.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023.

    Example:
        >>> nn.models.MambaModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        d_state: int = 16,
        d_conv: int = 4,
        expand: int = 2,
        version: int = 1,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
        norm_eps: float | None = None,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/mamba",
            "d_state": d_state,
            "d_conv": d_conv,
            "expand": expand,
            "version": version,
        }
        shared = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
            "norm_eps": norm_eps,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            shared,
            max_length=max_length,
            tie_weights=tie_weights,
        )


@register("models/rwkv", config=RWKVModelConfig)
class RWKVModel(BlockModel):
    """RWKV blocks.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        num_heads: how many heads the states have.
        version: 5 or 6.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Peng et al., "Eagle and Finch: RWKV with Matrix-Valued States and Dynamic
    Recurrence", 2024.

    Example:
        >>> nn.models.RWKVModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        num_heads: int = 8,
        version: int = 6,
        norm: str = "layer_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/rwkv",
            "num_heads": num_heads,
            "version": version,
        }
        shared = {
            "norm": norm,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
        }
        super().__init__(
            block,
            num_layers,
            vocab_size,
            hidden_size,
            shared,
            max_length=max_length,
            tie_weights=tie_weights,
        )
