"""The language model: any layers between an embedding and a head."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor
from ember_ml.configs.models.base import LanguageModelConfig
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.models.generation import Generator
from ember_ml.nn.models.positions import sinusoids
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.sequence_module import State
from ember_ml.registry import register


@register("models/language_model", config=LanguageModelConfig, aliases=["language-model", "lm"])
class LanguageModel(Generator):
    """A language model of any layers: attention, Hyena, Mamba, RWKV, liquid cells, experts ...

    ::

        tokens ── embedding ── + ─┬─ norm ─ layer 0 ─ + ── ... ── norm ── head ── logits
                               │  └───────────────────┘
                       positions, if any

    Args:
        layers: a pattern such as "attention swiglu hyena swiglu" or "(mamba swiglu)x3 attention
            swiglu", or a list of names, configs, modules and blocks.
        vocab_size: how many tokens there are.
        hidden_size: the width of the model.
        norm: "rms_norm", "layer_norm" or "none".
        placement: whether norms stand before ("pre") or after ("post") the layers.
        dropout: the share of the embeddings, and of what each layer gives, that training drops.
        stochastic_depth: the share of the examples for which training leaves the last layer out;
            the first is always there, those between less often.
        max_length: the longest sequence; needed by learned positions, and told to the layers.
        positions: what is added to the embeddings: "none", "learned" or "sinusoidal".
        tie_weights: whether the head uses the vectors of the embedding.
        head_bias: whether the head has a bias.
        norm_eps: what keeps the denominators of the norms, but not of those inside of blocks among
            the layers, from zero; the norm's own if not given.

    Shape: (batch, time) of integers -> (batch, time, vocab_size).

    Example:
        >>> model = nn.models.LanguageModel("(mamba swiglu)x2 attention swiglu", 64, 16)
        >>> model(tensor.array([[1, 2, 3]])).shape
        (1, 3, 64)
        >>> model.generate([[1, 2, 3]], max_new_tokens=4).shape
        (1, 7)
    """

    head: Dense | None
    head_shift: Parameter | None
    table: Parameter | Buffer | None

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
        positions: str = "none",
        tie_weights: bool = False,
        head_bias: bool = False,
        norm_eps: float | None = None,
    ) -> None:
        self.vocab_size = vocab_size
        self.max_length = max_length if positions != "none" else None
        self.dropout = dropout
        # as large as what layers add to it, or the first layers would drown the tokens; vectors
        # that make logits too must be smaller
        start = Normal(0.0, hidden_size**-0.5 if tie_weights else 1.0)
        self.embedding = Embedding(vocab_size, hidden_size, initializer=start)
        self.table = self._make_table(positions, max_length, hidden_size, start)
        self.backbone = Backbone(
            layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length, norm_eps
        )
        self.head = None if tie_weights else Dense(hidden_size, vocab_size, bias=head_bias)
        tied_shift = tie_weights and head_bias
        self.head_shift = Parameter(ops.zeros(vocab_size), decay=False) if tied_shift else None

    def _make_table(
        self, positions: str, max_length: int | None, features: int, start: Normal
    ) -> Parameter | Buffer | None:
        """The embeddings of the positions."""
        if positions == "none":
            return None
        if max_length is None:
            raise ArgumentError(
                f"{type(self).__name__}: positions={positions!r} needs max_length, the longest "
                "sequence"
            )
        if positions == "learned":
            return Parameter(start((max_length, features)))
        return Buffer(sinusoids(max_length, features, self.embedding.weight), persistent=False)

    def forward(self, tokens: Tensor, mask: Tensor | None = None, timespans: Any = None) -> Tensor:
        """The logits of the token after each.

        Args:
            tokens: (batch, time) of integers.
            mask: (batch, time), False where there is padding.
            timespans: the time since the token before, for the layers that mind it.
        """
        if tokens.ndim != 2:
            raise ShapeError(f"{type(self).__name__} takes (batch, time), not {tokens.shape}")
        x = self.embedding(tokens)
        if self.table is not None:
            self._check_length(tokens.shape[1])
            x = x + self.table[: tokens.shape[1]]
        return self.logits(self.backbone(self._dropped(x), mask, timespans))

    def _dropped(self, x: Tensor) -> Tensor:
        return ops.dropout(x, self.dropout) if self.training and self.dropout else x

    def _check_length(self, length: int) -> None:
        if self.max_length is not None and length > self.max_length:
            raise ShapeError(
                f"{type(self).__name__}: {length} tokens, but positions up to "
                f"max_length={self.max_length}"
            )

    def logits(self, x: Tensor) -> Tensor:
        """What the head makes of the features."""
        y = self.embedding.attend(x) if self.head is None else self.head(x)
        return y if self.head_shift is None else y + self.head_shift

    def initial_state(self, batch: int) -> State:
        """The position of the next token, (batch,), and the states of the layers."""
        at = convert_to_tensor([0] * batch, dtype="int64", backend=self.embedding.weight.backend)
        return at, self.backbone.initial_state(batch)

    def step(self, tokens: Tensor, state: State, timespan: Any = None) -> tuple[Tensor, State]:
        """The logits after one more token each, (batch, vocab_size), and the state."""
        at, inner = state
        x = self.embedding(tokens)
        if self.table is not None:
            x = x + ops.embedding(self.table, at)
        y, inner = self.backbone.step(self._dropped(x), inner, timespan)
        return self.logits(y), (at + 1, inner)
