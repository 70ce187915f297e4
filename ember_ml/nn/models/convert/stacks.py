"""Configs of transformers: of the preset if it suffices, or else layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.configs.models import LanguageModelConfig, TransformerModelConfig


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Settings of a transformer."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int | None = None
    inner_size: int
    activation: Any
    gated: bool
    norm: str
    norm_eps: float
    max_length: int
    tie_weights: bool
    learned_positions: bool = False
    rope_base: float = 10000.0
    window: int | None = None
    attention_bias: bool
    inner_bias: bool
    embedding_dropout: float = 0.0
    layer_dropout: float = 0.0
    attention_dropout: float = 0.0

    def config(self) -> Config:
        """Return the config of the model."""
        alike = self.attention_bias == self.inner_bias
        return (
            self._preset()
            if alike and self.embedding_dropout == self.layer_dropout
            else self._layer_by_layer()
        )

    def _preset(self) -> Config:
        return TransformerModelConfig(
            **self._shared(),
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            inner_size=self.inner_size,
            activation=self.activation,
            gated=self.gated,
            window=self.window,
            positions="learned" if self.learned_positions else "rope",
            rope_base=self.rope_base,
            bias=self.attention_bias,
            attention_dropout=self.attention_dropout,
        )

    def _shared(self) -> dict[str, Any]:
        return {
            "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size,
            "norm": self.norm,
            "norm_eps": self.norm_eps,
            "dropout": self.embedding_dropout,
            "max_length": self.max_length,
            "tie_weights": self.tie_weights,
        }

    def _layer_by_layer(self) -> Config:
        return LanguageModelConfig(
            **self._shared(),
            layers=[self._residual(self._attention()), self._residual(self._inner())]
            * self.num_layers,
            positions="learned" if self.learned_positions else "none",
        )

    def _attention(self) -> dict[str, Any]:
        return {
            "type": "layers/attention",
            "features": self.hidden_size,
            "num_heads": self.num_heads,
            "num_kv_heads": self.num_kv_heads,
            "window": self.window,
            "positions": "none" if self.learned_positions else "rope",
            "rope_base": self.rope_base,
            "bias": self.attention_bias,
            "dropout": self.attention_dropout,
        }

    def _inner(self) -> dict[str, Any]:
        return {
            "type": "layers/gated_linear" if self.gated else "layers/feed_forward",
            "features": self.hidden_size,
            "inner_features": self.inner_size,
            "activation": self.activation,
            "bias": self.inner_bias,
        }

    def _residual(self, layer: dict[str, Any]) -> dict[str, Any]:
        return {
            "type": "blocks/residual",
            "layer": layer,
            "norm": self.norm,
            "norm_eps": self.norm_eps,
            "dropout": self.layer_dropout,
        }
