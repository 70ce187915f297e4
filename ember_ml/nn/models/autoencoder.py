"""A sequence of tokens into one vector, and back."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.models.base import AutoEncoderConfig
from ember_ml.nn.activations import GELU
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding, RMSNorm
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.models.base import Model
from ember_ml.nn.models.heads import pooled
from ember_ml.nn.models.positions import sinusoids
from ember_ml.nn.sequential import Sequential
from ember_ml.registry import register


@register("models/autoencoder", config=AutoEncoderConfig, aliases=["auto_encoder", "auto-encoder"])
class AutoEncoder(Model):
    """The features of the last token, from which all tokens are read: MAD's compression model.

    ::

        tokens ── embedding ── layers ── norm ── the last position
                                                     │
        logits ── Dense ── norm ── (GELU ── Dense ── norm) x 2 ── + sines of each position

    Args:
        layers: a pattern such as "attention swiglu", or a list of names, configs and modules.
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers.
        dropout: the share of what each layer gives that training drops.
        stochastic_depth: the share of the examples for which training leaves the last layer out.
        max_length: the longest sequence, for the layers that need to know.
        decoder_layers: how many hidden layers read the tokens from the vector.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024.

    Example:
        >>> nn.models.AutoEncoder("attention swiglu", 16, 8)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 16)
    """

    default_loss = "cross_entropy"

    def __init__(
        self,
        layers: Any,
        vocab_size: int,
        hidden_size: int = 128,
        norm: str = "rms_norm",
        placement: str = "pre",
        dropout: float = 0.0,
        stochastic_depth: float = 0.0,
        max_length: int | None = None,
        decoder_layers: int = 2,
    ) -> None:
        self.hidden_size = hidden_size
        self.embedding = Embedding(vocab_size, hidden_size, initializer=Normal(0.0, 1.0))
        self.encoder = Backbone(
            layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length
        )
        self.decoder = Sequential()
        for _ in range(decoder_layers):
            self.decoder.extend([RMSNorm(hidden_size), Dense(hidden_size, hidden_size), GELU()])
        self.decoder.extend([RMSNorm(hidden_size), Dense(hidden_size, vocab_size)])

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """The logits of all tokens, from the features of the last."""
        if tokens.ndim != 2:
            raise ShapeError(f"{type(self).__name__} takes (batch, time), not {tokens.shape}")
        return self.decode(self.encode(tokens, mask), tokens.shape[1])

    def encode(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """The features of the last token that is no padding: (batch, hidden_size)."""
        return pooled(self.encoder(self.embedding(tokens), mask), mask, "last")

    def decode(self, code: Tensor, length: int) -> Tensor:
        """The logits of so many tokens, of (batch, hidden_size)."""
        places = sinusoids(length, self.hidden_size, self.embedding.weight)
        return self.decoder(ops.expand_dims(code, 1) + places)
