"""Greedy decoding and sampling, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.decoding.call import Call, Watch, as_rows
from ember_ml.nn.models.decoding.result import FinishReason, Generation
from ember_ml.nn.models.sampling import Sampler

_INTERVAL = 16
"""Number of tokens after which logits are checked if nothing else needs a transfer."""


class Step(NamedTuple):
    """New token of each row."""

    tokens: Tensor
    """Integers of shape (batch,). A row that has ended repeats its last token."""
    log_probs: Tensor | None
    """Log-probabilities under the model: (batch,)."""


class SamplingLoop:
    """Tokens of all rows of a call, one after the other.

    Nothing is moved to the host unless a stop condition has to be checked, and then the new tokens
    only.

    Args:
        call: Prompts and options.
        log_probs: Whether to compute log-probabilities.
    """

    def __init__(self, call: Call, log_probs: bool = False) -> None:
        self.call = call
        self.with_log_probs = log_probs
        options = call.options
        self.sampler = Sampler(
            options.temperature, options.top_k, options.top_p, options.seed, options.min_p
        )
        self.watch = Watch()
        rows = len(call.order)
        self.generated: list[list[int]] = [[] for _ in range(rows)]
        """Tokens of each row until its end, if there are stop conditions."""
        self.ended = [False] * rows

    def __iter__(self) -> Iterator[Step]:
        call = self.call
        if not call.count:
            return
        logits, state, history = call.start()
        state = call.decoder.ready(state, max(call.prompts.lengths), call.count)
        last: Tensor | None = None
        ended: Tensor | None = None
        for at in range(call.count):
            scores = call.scores(logits, history, self.generated, at)
            is_bad = self.watch.add(scores, at, ended)
            tokens = self.sampler(scores)
            if ended is not None and last is not None:
                tokens = ops.where(ended, last, tokens)
            if self._update(tokens, is_bad, at):
                ended = as_rows(self.ended, tokens)
            last = tokens
            yield Step(tokens, token_log_probs(logits, tokens) if self.with_log_probs else None)
            if at + 1 == call.count or all(self.ended):
                return
            history = call.processor.add(history, tokens)
            logits, state = call.decoder.step(tokens, state)

    def _update(self, tokens: Tensor, is_bad: Tensor, at: int) -> bool:
        """Check the stop conditions; return whether a row has ended."""
        stopping = self.call.stopping
        if stopping.is_empty:
            if at + 1 == self.call.count or at % _INTERVAL == _INTERVAL - 1:
                self.watch.check(self.call)
            return False
        changed = False
        values = ops.where(is_bad, -1, tokens).tolist()
        for row, token in enumerate(values):
            if self.ended[row]:
                continue
            if token < 0:
                self.watch.check(self.call)
            self.generated[row].append(token)
            if stopping.ends(self.generated[row]):
                self.ended[row] = changed = True
        return changed

    def result(self) -> Generation:
        """Return the sequences of all rows."""
        steps = list(self)
        call = self.call
        tokens = self.generated
        if call.stopping.is_empty and steps:
            tokens = ops.stack([step.tokens for step in steps], axis=1).tolist()
        prompts = call.prompts.rows
        reasons: list[FinishReason] = ["stop" if ended else "length" for ended in self.ended]
        return Generation(
            [prompts[row] for row in call.order], tokens, reasons, self._log_probs(steps, tokens)
        )

    def _log_probs(self, steps: list[Step], tokens: list[list[int]]) -> list[list[float]] | None:
        if not self.with_log_probs:
            return None
        columns = [step.log_probs for step in steps if step.log_probs is not None]
        table = ops.stack(columns, axis=1).tolist() if columns else [[] for _ in tokens]
        return [values[: len(row)] for values, row in zip(table, tokens, strict=True)]


def token_log_probs(logits: Tensor, tokens: Tensor) -> Tensor:
    """Return the log-probabilities of tokens: (batch,).

    Args:
        logits: Tensor of shape (batch, vocab_size).
        tokens: Integers of shape (batch,).
    """
    all_values = ops.log_softmax(logits.astype("float32"), axis=-1)
    return ops.take_along_axis(all_values, tokens[:, None], axis=-1)[:, 0]
