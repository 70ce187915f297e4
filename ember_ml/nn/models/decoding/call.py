"""One call of generation: checked prompts and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml._core.tensor import Tensor, TensorLike
from ember_ml.nn.models.decoding.compiled import CompiledDecoder, is_worthwhile
from ember_ml.nn.models.decoding.decoder import Decoder, RecomputingDecoder, take
from ember_ml.nn.models.decoding.logits import History, LogitsProcessor
from ember_ml.nn.models.decoding.options import Options, integer
from ember_ml.nn.models.decoding.prompts import read_prompts
from ember_ml.nn.models.decoding.stopping import Stopping

if TYPE_CHECKING:
    from ember_ml.nn.models.generation import Generator


class NonFiniteLogitsError(EmberError, ValueError):
    """Logits from which no token can be chosen."""


class Call:
    """Prompts, options and parts of one call.

    Args:
        model: The model.
        prompt: Prompts, as in `Generator.generate`.
        max_new_tokens: Maximum number of tokens to add.
        mask: Padding mask of the prompts.
        num_samples: Number of sequences of each prompt. Default: one.
        options: The other options.
    """

    def __init__(
        self,
        model: Generator,
        prompt: TensorLike,
        max_new_tokens: int,
        mask: TensorLike | None,
        num_samples: int | None,
        options: Mapping[str, Any],
    ) -> None:
        self.name = type(model).__name__
        self.model = model
        self.options = Options.of(options, model.vocab_size)
        like = model.parameters()[0]
        self.prompts = read_prompts(self.name, prompt, mask, like, model.vocab_size)
        self.count = integer("max_new_tokens", max_new_tokens)
        self.samples = 1 if num_samples is None else integer("num_samples", num_samples)
        self.stopping = Stopping(self.options, model.vocab_size, model.tokenizer)
        self._check()
        self.check_length(model)
        self.processor = LogitsProcessor(self.options, model.vocab_size, self.prompts.tokens)
        self.decoder = self.new_decoder(model)

    @property
    def has_lists(self) -> bool:
        """Whether the sequences have unequal lengths, so that a tensor cannot hold them."""
        return (
            self.prompts.is_ragged
            or self.stopping.choices is not None
            or bool(self.stopping.strings)
        )

    @property
    def order(self) -> list[int]:
        """Index of the prompt of each row."""
        return [row for row in range(len(self.prompts.lengths)) for _ in range(self.samples)]

    def _check(self) -> None:
        if self.count < 0:
            raise ArgumentError(
                f"{self.name}.generate: max_new_tokens={self.count} must be at least 0"
            )
        if self.samples < 1:
            raise ArgumentError(
                f"{self.name}.generate: num_samples={self.samples} must be at least 1"
            )
        if self.options.min_new_tokens > self.count:
            raise ArgumentError(
                f"{self.name}.generate: min_new_tokens={self.options.min_new_tokens} exceeds "
                f"max_new_tokens={self.count}"
            )
        choices = self.stopping.choices
        if choices is not None and choices.max_length > self.count:
            raise ArgumentError(
                f"{self.name}.generate: max_new_tokens={self.count} is less than the longest "
                f"allowed continuation with {choices.max_length} tokens"
            )

    def check_length(self, model: Generator) -> None:
        """Raise an error if the sequences are too long for a model."""
        longest = max(self.prompts.lengths)
        if model.max_length is not None and longest + self.count > model.max_length:
            raise ArgumentError(
                f"{type(model).__name__}.generate: {longest} tokens and {self.count} new ones "
                f"exceed max_length={model.max_length}"
            )

    def new_decoder(self, model: Generator) -> Decoder:
        """Return a decoder of a model."""
        if not self.options.cache:
            return RecomputingDecoder(model)
        is_plain = self.options.num_beams == 1 and self.options.draft is None
        if is_plain and is_worthwhile(model, self.count, self.options.compile):
            return CompiledDecoder(model)
        return Decoder(model)

    def start(self) -> tuple[Tensor, Any, History]:
        """Return logits, state and history after the prompts, for all samples."""
        logits, state = self.decoder.prefill(self.prompts.tokens, self.prompts.lengths)
        rows = self.order
        if self.samples > 1:
            logits, state = take(logits, rows), self.decoder.take_rows(state, rows)
        return logits, state, self.processor.start(take(self.prompts.tokens, rows))

    def scores(
        self,
        logits: Tensor,
        history: History,
        generated: Sequence[Sequence[int]],
        count: int | list[int],
    ) -> Tensor:
        """Return the logits from which tokens are chosen.

        Args:
            logits: Tensor of shape (batch, vocab_size).
            history: Tokens seen before, for penalties.
            generated: Tokens of each row generated before, where choices are constrained.
            count: Number of tokens generated before, or one for each row.
        """
        logits = self.processor(logits, history, count)
        if self.stopping.choices is None:
            return logits
        return self.processor.only(
            logits, [self.stopping.choices.next_tokens(tokens) for tokens in generated]
        )

    def non_finite(self, row: int, at: int) -> NonFiniteLogitsError:
        """Return the error for logits with NaN or infinite values.

        Args:
            row: Index of the row.
            at: Number of tokens generated before.
        """
        prompt = row // self.samples
        return NonFiniteLogitsError(
            f"{self.name}.generate: the logits of row {row} at position "
            f"{self.prompts.lengths[prompt] + at} (new token {at}) are NaN or infinite, or exclude "
            "every token; check the weights of the model and logit_bias"
        )


class Watch:
    """Detection of NaN and infinite logits without a transfer for each token."""

    def __init__(self) -> None:
        self.first: Tensor | None = None
        """Number of the first new token with such logits, -1 if there is none: (batch,)."""

    def add(self, scores: Tensor, at: int, ended: Tensor | None = None) -> Tensor:
        """Record the logits of a token, and return whether each row is bad so far.

        Args:
            scores: Logits from which the token is chosen.
            at: Number of tokens generated before.
            ended: Rows to ignore.
        """
        is_bad = ops.logical_not(ops.isfinite(ops.max(scores, axis=-1)))
        if ended is not None:
            is_bad = ops.logical_and(is_bad, ops.logical_not(ended))
        if self.first is None:
            self.first = ops.zeros_like(is_bad, dtype="int64") - 1
        is_first = ops.logical_and(is_bad, self.first < 0)
        self.first = ops.where(is_first, ops.zeros_like(self.first) + at, self.first)
        return self.first >= 0

    def check(self, call: Call) -> None:
        """Raise an error if logits were NaN or infinite."""
        if self.first is None:
            return
        for row, at in enumerate(self.first.tolist()):
            if at >= 0:
                raise call.non_finite(row, at)


def as_rows(values: Sequence[bool], like: Tensor) -> Tensor:
    """Return booleans, one for each row, as a tensor."""
    return convert_to_tensor(list(values), dtype="bool", device=like.device, backend=like.backend)
