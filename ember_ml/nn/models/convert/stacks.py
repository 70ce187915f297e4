"""Configs of transformers: of the preset if it suffices, or else layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ember_ml.configs.base import Config
from ember_ml.configs.models import LanguageModelConfig, TransformerModelConfig

PRESET = frozenset({"window", "rope_base"})
"""Options of attention layers that the preset has too."""


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """Settings of a transformer.

    Attributes:
        attention: Further options of all attention layers.
        by_layer: Further options of each attention layer. Default: they are alike.
        mixers: Layers in the place of attention layers, by index.
        inner: Layers in the place of feed-forward layers, by index.
        placement: Placement of the norms.
        parallel: Whether attention and feed-forward layers read the same input.
        model: Further options of the model.
    """

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
    attention_bias: bool
    inner_bias: bool
    embedding_dropout: float = 0.0
    layer_dropout: float = 0.0
    attention_dropout: float = 0.0
    attention: Mapping[str, Any] = field(default_factory=dict)
    by_layer: Sequence[Mapping[str, Any]] = ()
    mixers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    inner: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    placement: str = "pre"
    parallel: bool = False
    model: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> Config:
        """Return the config of the model."""
        plain = not (self.by_layer or self.mixers or self.inner or self.model or self.parallel)
        plain = plain and self.placement == "pre" and self.attention.keys() <= PRESET
        alike = self.attention_bias == self.inner_bias
        alike = alike and self.embedding_dropout == self.layer_dropout
        return self._preset() if plain and alike else self._layer_by_layer()

    def _preset(self) -> Config:
        return TransformerModelConfig(
            **self._shared(),
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            inner_size=self.inner_size,
            activation=self.activation,
            gated=self.gated,
            positions="learned" if self.learned_positions else "rope",
            bias=self.attention_bias,
            attention_dropout=self.attention_dropout,
            **self.attention,
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
        pairs = [self._pair(at) for at in range(self.num_layers)]
        placement: dict[str, Any] = {} if self.placement == "pre" else {"placement": self.placement}
        return LanguageModelConfig(
            **self._shared(),
            **placement,
            **self.model,
            layers=[layer for pair in pairs for layer in pair],
            positions="learned" if self.learned_positions else "none",
        )

    def _pair(self, at: int) -> list[dict[str, Any]]:
        mixer = self.mixers.get(at) or self._attention(self.by_layer[at] if self.by_layer else {})
        layers = [self._residual(each) for each in (mixer, self.inner.get(at) or self._inner())]
        if not self.parallel:
            return layers
        kind = "blocks/parallel_residual"
        return [{"type": kind, "hidden_size": self.hidden_size, "layers": layers}]

    def _attention(self, own: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "type": "layers/attention",
            "features": self.hidden_size,
            "num_heads": self.num_heads,
            "num_kv_heads": self.num_kv_heads,
            "positions": "none" if self.learned_positions else "rope",
            "bias": self.attention_bias,
            "dropout": self.attention_dropout,
            **self.attention,
            **own,
        }

    def _inner(self) -> dict[str, Any]:
        return {
            "type": "layers/gated_linear" if self.gated else "layers/feed_forward",
            "features": self.hidden_size,
            "inner_features": self.inner_size,
            "activation": self.activation,
            "bias": self.inner_bias,
        }

    def _residual(self, layer: Mapping[str, Any]) -> dict[str, Any]:
        placement = {} if self.placement == "pre" else {"placement": self.placement}
        return {
            "type": "blocks/residual",
            "layer": layer,
            "hidden_size": self.hidden_size,
            "norm": self.norm,
            "norm_eps": self.norm_eps,
            "dropout": self.layer_dropout,
            **placement,
        }
