"""Language models of attention, and of experts behind it."""

from __future__ import annotations

from typing import Any

from ember_ml.configs.models.named import HybridModelConfig, MoEModelConfig, TransformerModelConfig
from ember_ml.nn.models.repeated import BlockModel
from ember_ml.registry import register


@register("models/transformer", config=TransformerModelConfig)
class TransformerModel(BlockModel):
    """A transformer: attention and feed-forward layers in turn.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        num_heads: how many heads attend.
        num_kv_heads: how many heads of keys and values there are; as many if not given.
        inner_size: features of the feed-forward layers.
        activation: of the feed-forward layers.
        gated: whether the feed-forward layers are gated linear units.
        window: how many positions before a position it attends to; to all if not given.
        positions: "rope" or "alibi" in the attention; "learned" or "sinusoidal" added to the
            embeddings, which need max_length; or "none".
        rope_base: the base of the angles of "rope".
        bias: whether the maps have biases.
        attention_dropout: the share of the weights of attention that training drops.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.
        norm_eps: what keeps the norms' denominators from zero; the norm's own if not given.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Vaswani et al., "Attention Is All You Need", 2017.

    Example:
        >>> nn.models.TransformerModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        num_heads: int = 8,
        num_kv_heads: int | None = None,
        inner_size: int | None = None,
        activation: Any = "gelu",
        gated: bool = False,
        window: int | None = None,
        positions: str = "rope",
        rope_base: float = 10000.0,
        bias: bool = True,
        attention_dropout: float = 0.0,
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
        norm_eps: float | None = None,
    ) -> None:
        inside = positions in ("rope", "alibi")
        block: dict[str, Any] = {
            "type": "blocks/transformer",
            "num_heads": num_heads,
            "num_kv_heads": num_kv_heads,
            "inner_size": inner_size,
            "activation": activation,
            "gated": gated,
            "window": window,
            "positions": positions if inside else "none",
            "rope_base": rope_base,
            "bias": bias,
            "attention_dropout": attention_dropout,
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
            "none" if inside else positions,
            norm_eps,
        )


@register("models/moe", config=MoEModelConfig)
class MoEModel(BlockModel):
    """A transformer whose feed-forward layers are mixtures of experts.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many blocks there are.
        num_heads: how many heads attend.
        num_experts: how many experts a layer has.
        top_k: how many of them work on a position.
        inner_size: features inside an expert.
        router: "softmax", "sigmoid", "noisy", "top_p" or "expert_choice".
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Fedus et al., "Switch Transformers", 2021.

    Example:
        >>> nn.models.MoEModel(64, 16)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        num_heads: int = 8,
        num_experts: int = 8,
        top_k: int = 2,
        inner_size: int | None = None,
        router: str = "softmax",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/moe",
            "mixer": {"type": "attention", "num_heads": num_heads},
            "num_experts": num_experts,
            "top_k": top_k,
            "inner_size": inner_size,
            "router": router,
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


@register("models/hybrid", config=HybridModelConfig)
class HybridModel(BlockModel):
    """Several kinds of mixers, in turn or side by side, with channel mixers between.

    Args:
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        num_layers: how many times the mixers come, each time with their channel mixers.
        mixers: a pattern, or a list of names and {"type": ...}.
        arrangement: "striped": in turn; "parallel": side by side.
        norm: "rms_norm", "layer_norm" or "none".
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves a layer out.
        max_length: the longest sequence, for the layers that need to know.
        tie_weights: whether the head uses the vectors of the embedding.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024.

    Example:
        >>> nn.models.HybridModel(64, 16, 1, "gru attention")(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
    """

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 128,
        num_layers: int = 2,
        mixers: Any = "mamba mamba mamba mh_attention",
        arrangement: str = "striped",
        norm: str = "rms_norm",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        tie_weights: bool = False,
    ) -> None:
        block: dict[str, Any] = {
            "type": "blocks/hybrid",
            "mixers": mixers,
            "arrangement": arrangement,
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
