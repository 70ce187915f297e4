"""Language models whose states have one size: Mamba, and RWKV."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.models.named import MambaModelConfig, RWKVModelConfig
from ember_ml.nn.models.repeated import BlockModel
from ember_ml.registry import register


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
            norm_eps=norm_eps,
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
