"""The language model: any layers between an embedding and a head."""

from __future__ import annotations

import math
from array import array
from typing import Any, Literal

from ember_ml import ops
from ember_ml._core import deferred, runtime
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.configs.fields import Below1, NormName, Positive, Size
from ember_ml.configs.patterns import LayersField
from ember_ml.nn.blocks.base import check_layers
from ember_ml.nn.blocks.residual import Placement
from ember_ml.nn.initializers import Normal
from ember_ml.nn.layers.channel_mixing import Dense, Embedding
from ember_ml.nn.layers.sequence_mixing.base import last_indices, positions_after, real_lengths
from ember_ml.nn.models.backbone import Backbone
from ember_ml.nn.models.deferred_logits import DeferredLogits, is_deferring
from ember_ml.nn.models.generation import Generator
from ember_ml.nn.parameter import Buffer, Parameter
from ember_ml.nn.sequence_module import Positions, State, check_batch
from ember_ml.nn.splitting import Split
from ember_ml.nn.stages import ModelPart, StageParts
from ember_ml.nn.tensor_split import TensorSplit
from ember_ml.registry import register


def sinusoids(length: int, features: int, like: Tensor) -> Tensor:
    """Return sinusoidal position embeddings of shape (length, features).

    Args:
        length: Number of positions.
        features: Number of features: sines, then cosines, at frequencies from 1 to 1/10000.
        like: Tensor whose dtype, device and backend the result has.

    Example:
        >>> from ember_ml.nn.models.language import sinusoids
        >>> sinusoids(1, 4, ops.ones(1)).tolist()
        [[0.0, 0.0, 1.0, 1.0]]
    """
    deferred.reserve(2 * length * features, f"a table of {length} positions")
    half = -(-features // 2)
    rates = [math.exp(-math.log(10000.0) * at / max(1, half)) for at in range(half)]
    rows = array("d")
    for at in range(length):
        rows.extend([wave(at * rate) for wave in (math.sin, math.cos) for rate in rates][:features])
    table = memoryview(rows).cast("B").cast("d", (length, features))
    return convert_to_tensor(table, dtype=like.dtype, device=like.device, backend=like.backend)


@register("models/language_model", aliases=["language-model", "lm"])
class LanguageModel(Generator):
    """Language model of any layers: attention, Hyena, Mamba, RWKV, liquid cells, experts.

    ::

        tokens ── embedding ── + ─┬─ norm ─ layer 0 ─ + ── ... ── norm ── head ── logits
                               │  └───────────────────┘
                       positions, if any

    Args:
        layers: A pattern such as "attention swiglu hyena swiglu" or "(mamba swiglu)x3 attention
            swiglu", or a list of names, configs, modules and blocks.
        vocab_size: Number of tokens in the vocabulary.
        hidden_size: Number of features of each position.
        norm: Normalization layer: "rms_norm", "layer_norm" or "none".
        placement: Where norms are applied: to the input of each layer ("pre"), to the sum after it
            ("post"), to its output before the sum ("output") or to input and output ("sandwich").
        dropout: Dropout probability of the embeddings and of each layer's output.
        stochastic_depth: Probability of skipping the last layer for an example during training.
            It increases linearly from 0 at the first layer.
        max_length: Maximum sequence length, for learned positions and for layers that need it.
        positions: What is added to the embeddings: "none", "learned" or "sinusoidal".
        tie_weights: Whether the head uses the embedding matrix.
        head_bias: Whether the head has a bias.
        norm_eps: Epsilon of the norms, except those inside blocks among the layers. Default:
            the norm's own.
        embedding_scale: Factor of the token embeddings. Default: 1.
        logit_softcap: Limit c of the logits s, which become c * tanh(s / c). Default: no limit.

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
        positions: Literal["none", "learned", "sinusoidal"] = "none",
        tie_weights: bool = False,
        head_bias: bool = False,
        norm_eps: Positive | None = None,
        embedding_scale: Positive = 1.0,
        logit_softcap: Positive | None = None,
    ) -> None:
        self.vocab_size = vocab_size
        self.max_length = max_length if positions != "none" else None
        self.dropout = dropout
        self.embedding_scale = embedding_scale
        self.logit_softcap = logit_softcap
        # The embeddings start at the scale of the layers' outputs, so that the first layers do not
        # drown them out. Tied embeddings are also the head, which needs a smaller scale.
        initializer = Normal(0.0, hidden_size**-0.5 if tie_weights else 1.0)
        self.embedding = Embedding(vocab_size, hidden_size, initializer=initializer)
        self.table = self._position_table(positions, max_length, hidden_size, initializer)
        self.backbone = Backbone(
            layers, hidden_size, norm, placement, dropout, stochastic_depth, max_length, norm_eps
        )
        self.head = None if tie_weights else Dense(hidden_size, vocab_size, bias=head_bias)
        tied_bias = tie_weights and head_bias
        self.head_shift = Parameter(ops.zeros(vocab_size), decay=False) if tied_bias else None

    def tensor_split(self) -> TensorSplit | None:
        """Return the split of the head by tokens, if their number is divisible."""
        if self.head is None:
            return None
        splits = {"head.weight": Split(0), "head.bias": Split(0)}
        return TensorSplit(splits, enter=("head",), join=("head",), is_optional=True)

    def _position_table(
        self, positions: str, max_length: int | None, features: int, initializer: Normal
    ) -> Parameter | Buffer | None:
        """Return the position embeddings."""
        if positions == "none":
            return None
        if max_length is None:
            raise ArgumentError(
                f"{type(self).__name__}: positions={positions!r} needs max_length, the maximum "
                "sequence length"
            )
        if positions == "learned":
            return Parameter(initializer((max_length, features)))
        return Buffer(sinusoids(max_length, features, self.embedding.weight), persistent=False)

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        *,
        state: State | None = None,
        at: Positions | None = None,
    ) -> Any:
        """Return the logits of the token after each position: (batch, time, vocab_size).

        With a state, also return the state after the last token.

        Args:
            tokens: Integer tensor of shape (batch, time).
            mask: Padding mask of shape (batch, time), False at padding. With a state, the padding
                of a sequence must come last; it does not change the state.
            timespans: Time since the previous token, for layers that use it.
            state: State before the first token. Default: the start of the sequence.
            at: Positions whose logits are needed: indices row * time + position, of shape (count,),
                or one position of every row, such as -1. The logits are then of shape (count,
                vocab_size), or (batch, vocab_size), and the head and the last layers that map each
                position by itself run on these positions alone. Default: all positions.
        """
        if state is None:
            x = self._embed(tokens)
            return self._output(self.backbone(self._drop(x), mask, timespans, at=at))
        y, state = self.features_of(tokens, state, mask, timespans, at)
        return self._output(y), state

    def features_of(
        self,
        tokens: Tensor,
        state: State,
        mask: Tensor | None = None,
        timespans: TensorLike | None = None,
        at: Positions | None = None,
    ) -> tuple[Tensor, State]:
        """Return the features that the head reads, (batch, time, hidden_size), and the next state.

        Args:
            tokens: Integer tensor of shape (batch, time).
            state: State before the first token.
            mask: As in `forward`.
            timespans: As in `forward`.
            at: As in `forward`.
        """
        start, inner = state
        check_batch(self, tokens.shape[0], start)
        end = start + (tokens.shape[1] if mask is None else real_lengths(mask))
        x = self._embed(tokens, start, end)
        y, inner = self.backbone(self._drop(x), mask, timespans, state=inner, at=at)
        return y, (end, inner)

    def stage_parts(self) -> StageParts:
        """Return the embedding, the layers and the head, for a pipeline of processes."""
        first = ModelPart([self.embedding, self.table], lambda x: self._drop(self._embed(x)))
        last = ModelPart(
            [self.backbone.norm, self.head or self.embedding, self.head_shift],
            lambda x: self.logits(self.backbone.normalize(x)),
        )
        return StageParts(first, self.backbone.blocks.layers, last)

    def prefill(
        self, tokens: Tensor, mask: Tensor | None = None, state: State | None = None
    ) -> tuple[Tensor, State]:
        """Return the logits after the last real token, (batch, vocab_size), and the state.

        Args:
            tokens: Prompts, integers of shape (batch, time), at least one real token in each row.
            mask: Padding mask of shape (batch, time), False at padding, which must come last.
            state: State before the first token. Default: the start of the sequence.

        Example:
            >>> model = nn.models.LanguageModel("attention", 8, 16)
            >>> logits, state = model.prefill(tensor.array([[1, 2, 3]]))
            >>> logits.shape, model.step(tensor.array([4]), state)[0].shape
            ((1, 8), (1, 8))
        """
        self._check_tokens(tokens)
        is_empty = not tokens.shape[1]
        if mask is not None and not is_empty:
            missing = ops.any(real_lengths(mask) == 0)
            is_empty = bool(runtime.LOADED[missing.backend].truth(missing.native))
        if is_empty:
            raise ShapeError(
                f"{type(self).__name__}.prefill: each row needs at least one real token"
            )
        state = self.initial_state(tokens.shape[0]) if state is None else state
        last = -1 if mask is None else last_indices(mask)
        y, state = self.features_of(tokens, state, mask, at=last)
        return self.logits(y), state

    def _embed(
        self, tokens: Tensor, position: Tensor | None = None, end: Tensor | None = None
    ) -> Tensor:
        """Return the embeddings of tokens.

        Args:
            tokens: Integer tensor of shape (batch, time).
            position: Index of the first position of each row, (batch,). Default: 0.
            end: Index after the last real position of each row, (batch,).
        """
        self._check_tokens(tokens)
        x = self._token_embeddings(tokens)
        if self.table is None:
            return x
        self._check_length(tokens.shape[1])
        if position is None or end is None:
            return x + self.table[: tokens.shape[1]]
        too_long = ops.any(end > self.table.shape[0])
        if runtime.LOADED[too_long.backend].truth(too_long.native):
            self._check_length(max(end.tolist()))
        places = ops.minimum(positions_after(position, tokens.shape[1]), self.table.shape[0] - 1)
        return x + ops.embedding(self.table, places)  # padding may be beyond the last position

    def _check_tokens(self, tokens: Tensor) -> None:
        if tokens.ndim != 2:
            raise ShapeError(
                f"{type(self).__name__}: expected tokens of shape (batch, time), got {tokens.shape}"
            )

    def _token_embeddings(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        return x if self.embedding_scale == 1 else x * self.embedding_scale

    def _drop(self, x: Tensor) -> Tensor:
        return ops.dropout(x, self.dropout) if self.training and self.dropout else x

    def _check_length(self, length: int) -> None:
        if self.max_length is not None and length > self.max_length:
            raise ShapeError(
                f"{type(self).__name__}: got {length} tokens, but max_length={self.max_length}"
            )

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits for features of shape (..., hidden_size): (..., vocab_size)."""
        y = self.embedding.attend(x) if self.head is None else self.head(x)
        y = y if self.head_shift is None else y + self.head_shift
        cap = self.logit_softcap
        return y if cap is None else cap * ops.tanh(y / cap)

    def _output(self, x: Tensor) -> Tensor | DeferredLogits:
        """Return the logits, or what they are computed from if a loss asks for that."""
        head = self.embedding if self.head is None else self.head
        if is_deferring() and not (self.is_split or head.is_split):
            return self.deferred_logits(x)
        return self.logits(x)  # processes that split the vocabulary join their logits

    def deferred_logits(self, x: Tensor) -> DeferredLogits:
        """Return what the logits are computed from: the features and the values of the head.

        Args:
            x: Features of shape (..., hidden_size).
        """
        head = self.embedding if self.head is None else self.head
        if type(head) not in (Dense, Embedding):
            raise ArgumentError(
                f"{type(self).__name__}: a loss in chunks needs a head with a floating-point "
                f"weight, not {type(head).__name__}; use loss='cross_entropy'"
            )
        bias = self.head_shift if self.head is None else self.head.bias
        return DeferredLogits(
            x, head.weight.value(), None if bias is None else bias.value(), self.logit_softcap
        )

    def initial_state(self, batch: int) -> State:
        """Return the index of the next position, of shape (batch,), and the layers' states."""
        like = self.embedding.weight
        at = convert_to_tensor([0] * batch, "int64", device=like.device, backend=like.backend)
        return at, self.backbone.initial_state(batch)

    def step(
        self, tokens: Tensor, state: State, timespan: TensorLike | None = None
    ) -> tuple[Tensor, State]:
        """Return the logits after one more token, (batch, vocab_size), and the next state."""
        at, inner = state
        check_batch(self, tokens.shape[0], at)
        x = self._token_embeddings(tokens)
        if self.table is not None:
            here = ops.embedding(self.table, at)  # not every framework checks indices
            x = x + ops.where(at[:, None] < self.table.shape[0], here, float("nan"))
        y, inner = self.backbone.step(self._drop(x), inner, timespan)
        return self.logits(y), (at + 1, inner)
