"""Autoencoder of token sequences."""

from __future__ import annotations

import math

from ember_ml import ops
from ember_ml._core.errors import ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.fields import Below1, NormName, Size
from ember_ml.configs.patterns import LayersField
from ember_ml.nn.activations import GELU
from ember_ml.nn.blocks.base import check_layers
from ember_ml.nn.blocks.residual import Placement
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding, RMSNorm
from ember_ml.nn.layers.sequence_mixing.base import index_range
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.models.base import Model
from ember_ml.nn.sequential import Sequential
from ember_ml.registry import register


@register("models/autoencoder", aliases=["auto_encoder", "auto-encoder"])
class AutoEncoder(Model):
    """Autoencoder that compresses a sequence into one vector: the model of MAD's compression task.

    ::

        tokens ── embedding ── layers ── norm ── last position
                                                     │
        logits ── Dense ── norm ── (GELU ── Dense ── norm) x 2 ── + position embeddings

    Args:
        layers: A pattern such as "attention swiglu", or a list of names, configs and modules.
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position, and of the code.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        placement: Where norms are applied: to the input of each layer ("pre") or to the sum
            after it ("post").
        dropout: Dropout probability of each layer's output.
        stochastic_depth: Probability of skipping the last layer for an example during training.
            It increases linearly from 0 at the first layer.
        max_length: Maximum sequence length, for layers that need it.
        decoder_layers: Number of hidden layers of the decoder.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Reference: Poli et al., "Mechanistic Design and Scaling of Hybrid Architectures", 2024.

    Example:
        >>> nn.models.AutoEncoder("attention swiglu", 16, 8)(tensor.array([[1, 2, 3]])).shape
        (1, 3, 16)
    """

    default_loss = "cross_entropy"
    check_config = staticmethod(check_layers)

    def __init__(
        self,
        layers: LayersField,
        vocab_size: Size,
        hidden_size: Size = 128,
        norm: NormName = "rms_norm",
        placement: Placement = "pre",
        dropout: Below1 = 0.0,
        stochastic_depth: Below1 = 0.0,
        max_length: Size | None = None,
        decoder_layers: Size = 2,
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
        """Return the logits of all tokens, decoded from the last position.

        Args:
            tokens: Integer tensor of shape (batch, time).
            mask: Padding mask of shape (batch, time), False at padding.
        """
        if tokens.ndim != 2:
            raise ShapeError(
                f"{type(self).__name__}: expected tokens of shape (batch, time), got {tokens.shape}"
            )
        return self.decode(self.encode(tokens, mask), tokens.shape[1])

    def encode(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the features of the last position that is not padding: (batch, hidden_size)."""
        return self.encoder.pooled(self.embedding(tokens), mask)

    def decode(self, code: Tensor, length: int) -> Tensor:
        """Return the logits of `length` tokens, (batch, length, vocab_size), for a code."""
        return self.decoder(ops.expand_dims(code, 1) + self._positions(length))

    def _positions(self, length: int) -> Tensor:
        """Return sinusoidal position embeddings, (length, hidden_size), as in `sinusoids`.

        They are computed by ops: the length is known in the forward pass only, which compilers
        trace.
        """
        weight = self.embedding.weight
        half = -(-self.hidden_size // 2)
        dtype = weight.dtype if weight.dtype.itemsize > 4 else "float32"
        exponents = index_range(0, half, weight).astype(dtype) / half
        angles = index_range(0, length, weight)[:, None] * ops.exp(-math.log(10000.0) * exponents)
        waves = ops.concat([ops.sin(angles), ops.cos(angles)], axis=1)
        return waves[:, : self.hidden_size].astype(weight.dtype)
