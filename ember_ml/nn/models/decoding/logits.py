"""Changes of logits before a token is chosen: penalties, biases and excluded tokens."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.decoding.decoder import take
from ember_ml.nn.models.decoding.options import Options

NEVER = -float("inf")


class History(NamedTuple):
    """What was seen so far, as far as the options need it."""

    seen: Tensor | None = None
    """Whether each token is in the prompt or was generated: (batch, vocab_size)."""
    counts: Tensor | None = None
    """How often each token was generated: (batch, vocab_size), float32."""

    def take_rows(self, rows: Sequence[int]) -> History:
        """Return the history of some rows, in a new order."""
        return History(*(None if part is None else take(part, rows) for part in self))


def join_histories(histories: Sequence[History]) -> History:
    """Return the histories of several batches as one.

    Args:
        histories: Histories of the same call, at least one.
    """
    if len(histories) == 1:
        return histories[0]
    columns = [
        [part for part in parts if part is not None] for parts in zip(*histories, strict=True)
    ]
    return History(*(ops.concat(column, axis=0) if column else None for column in columns))


class LogitsProcessor:
    """Penalties, biases and excluded stop tokens of a call: logits -> logits.

    Args:
        options: Options of the call.
        vocab_size: Number of tokens in the vocabulary.
        like: Tensor on the backend and device of the logits.
    """

    def __init__(self, options: Options, vocab_size: int, like: Tensor) -> None:
        self.options = options
        self.vocab_size = vocab_size
        self.like = like

    @functools.cached_property
    def tokens(self) -> Tensor:
        """All tokens: (1, vocab_size)."""
        return self._tensor(range(self.vocab_size))[None]

    @functools.cached_property
    def bias(self) -> Tensor:
        """Numbers added to the logits: (vocab_size,)."""
        biases = self.options.logit_bias or {}
        return self._tensor([biases.get(token, 0.0) for token in range(self.vocab_size)], "float32")

    @functools.cached_property
    def is_stop(self) -> Tensor:
        """Whether each token is a stop token: (vocab_size,)."""
        stops = set(self.options.stop_ids)
        return self._tensor([token in stops for token in range(self.vocab_size)], "bool")

    def _tensor(self, values: Iterable[float], dtype: str = "int64") -> Tensor:
        like = self.like
        return convert_to_tensor(
            list(values), dtype=dtype, device=like.device, backend=like.backend
        )

    def start(self, prompts: Tensor) -> History:
        """Return the history before the first new token.

        Args:
            prompts: Integers of shape (batch, time). Every token counts, that of padding too.
        """
        options = self.options
        repeats = options.repetition_penalty != 1
        counts = options.presence_penalty != 0 or options.frequency_penalty != 0
        if not (repeats or counts):
            return History()
        zeros = ops.tile(ops.zeros_like(self.tokens, dtype="float32"), (prompts.shape[0], 1))
        ones = ops.zeros_like(prompts, dtype="float32") + 1
        seen = ops.put_along_axis(zeros, prompts.astype("int64"), ones, axis=1) > 0
        return History(seen if repeats else None, zeros if counts else None)

    def add(self, history: History, tokens: Tensor) -> History:
        """Return the history after one more token of each row.

        Args:
            history: History before it.
            tokens: Integers of shape (batch,).
        """
        if history.seen is None and history.counts is None:
            return history
        is_new = self.tokens == tokens[:, None]
        seen = None if history.seen is None else ops.logical_or(history.seen, is_new)
        counts = None if history.counts is None else history.counts + is_new.astype("float32")
        return History(seen, counts)

    def __call__(self, logits: Tensor, history: History, generated: int | list[int]) -> Tensor:
        """Return the logits from which the next tokens are chosen.

        Args:
            logits: Tensor of shape (batch, vocab_size).
            history: What was seen before.
            generated: Number of tokens that were generated before, or one for each row.
        """
        options = self.options
        if history.seen is not None:
            penalty = options.repetition_penalty
            lower = ops.where(logits < 0, logits * penalty, logits / penalty)
            logits = ops.where(history.seen, lower, logits)
        if history.counts is not None:
            present = (history.counts > 0).astype("float32")
            logits = logits - options.presence_penalty * present
            logits = logits - options.frequency_penalty * history.counts
        if options.logit_bias:
            logits = logits + self.bias
        if options.stop_ids and options.min_new_tokens:
            logits = self._without_stops(logits, generated)
        return logits

    def _without_stops(self, logits: Tensor, generated: int | list[int]) -> Tensor:
        """Exclude the stop tokens of rows that are too short."""
        counts = [generated] if isinstance(generated, int) else generated
        is_short = [count < self.options.min_new_tokens for count in counts]
        if not any(is_short):
            return logits
        short = self._tensor(is_short, "bool")[:, None]
        return ops.where(ops.logical_and(short, self.is_stop), NEVER, logits)

    def only(self, logits: Tensor, allowed: Sequence[list[int]]) -> Tensor:
        """Return logits that are -inf except for the allowed tokens of each row.

        Args:
            logits: Tensor of shape (batch, vocab_size).
            allowed: Allowed tokens of each row; an empty list allows all.
        """
        width = max([1, *map(len, allowed)])
        # A shorter row repeats its first token.
        table = [[*ids, *(ids[:1] or [0]) * (width - len(ids))] for ids in allowed]
        device, backend = logits.device, logits.backend
        ids = convert_to_tensor(table, dtype="int64", device=device, backend=backend)
        free = convert_to_tensor(
            [[not each] for each in allowed], dtype="bool", device=device, backend=backend
        )
        ones = ops.zeros_like(ids, dtype="int32") + 1
        mask = ops.put_along_axis(ops.zeros_like(logits, dtype="int32"), ids, ones, axis=1) > 0
        return ops.where(ops.logical_or(mask, free), logits, NEVER)
