"""Evaluation of a model token by token."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.nn import states
from ember_ml.nn.module import inference_mode
from ember_ml.nn.states import State

if TYPE_CHECKING:
    from ember_ml.nn.models.generation import Generator


class Decoder:
    """Logits of the next tokens of several rows, from a state or KV cache.

    A state is a value: it can be kept, and used again for another continuation.

    Args:
        model: The model.
    """

    def __init__(self, model: Generator) -> None:
        self.model = model
        self.parts = list(model.modules())
        self.takes_state = "state" in inspect.signature(model.forward).parameters

    def prefill(
        self, tokens: Tensor, lengths: Sequence[int], state: State | None = None
    ) -> tuple[Tensor, State]:
        """Return the logits after the last token of each row, (batch, vocab_size), and the state.

        Args:
            tokens: Integers of shape (batch, time). Tokens beyond the length of a row are ignored.
            lengths: Number of tokens of each row.
            state: State before the first token. Default: the start of the sequence.
        """
        with inference_mode(self.parts):  # not across a yield of the caller
            logits, state = self.model.prefill(tokens, padding_mask(lengths, tokens), state)
            return logits, states.reserve(state)

    def ready(self, state: State, length: int, count: int) -> State:
        """Return the state after a prompt in the form that `step` takes.

        Args:
            state: Result of `prefill` or `take_rows`.
            length: Number of tokens of the longest prompt.
            count: Maximum number of new tokens.
        """
        return state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits after one more token of each row, and the next state.

        Args:
            tokens: Integers of shape (batch,).
            state: Result of `prefill`, `step`, `extend` or `take_rows`.
        """
        with inference_mode(self.parts):
            return self.model.step(tokens, state)

    def extend(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits after each of several tokens, (batch, time, vocab_size), and the state.

        Args:
            tokens: Integers of shape (batch, time), with at least one token.
            state: As in `step`.
        """
        if self.takes_state:
            with inference_mode(self.parts):
                logits, state = self.model(tokens, state=state)
                return logits, state
        outputs = []
        for at in range(tokens.shape[1]):
            logits, state = self.step(tokens[:, at], state)
            outputs.append(logits)
        return ops.stack(outputs, axis=1), state

    def take_rows(self, state: State, rows: Sequence[int]) -> State:
        """Return the state of some rows, in a new order.

        Args:
            state: As in `step`.
            rows: Indices of rows; the same row may be taken several times.
        """
        return states.take_rows(state, list(rows))

    def join(self, parts: Sequence[State]) -> State:
        """Return the states of several batches as one.

        Args:
            parts: States, at least one.
        """
        return states.join(parts)


class RecomputingDecoder(Decoder):
    """Decoder that computes the whole sequence for each token. Its state has all tokens.

    Args:
        model: The model.
    """

    def __init__(self, model: Generator) -> None:
        super().__init__(model)
        self.takes_state = False

    def prefill(
        self, tokens: Tensor, lengths: Sequence[int], state: State | None = None
    ) -> tuple[Tensor, State]:
        """Return the logits after the last token of each row, and the state."""
        ends = list(lengths)
        if state is not None:
            before, starts = state
            for at in range(tokens.shape[1]):
                before = self._put(before, [start + at for start in starts], tokens[:, at])
            tokens, ends = before, [a + b for a, b in zip(starts, lengths, strict=True)]
            tokens = tokens[:, : max(ends)]
        return self._logits(tokens, ends), (tokens, ends)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Return the logits after one more token of each row, and the next state."""
        before, lengths = state
        joined = self._put(before, lengths, tokens)
        longer = [length + 1 for length in lengths]
        return self._logits(joined, longer), (joined, longer)

    def _put(self, before: Tensor, places: Sequence[int], tokens: Tensor) -> Tensor:
        """Return sequences with one more token of each row, at a place of its own."""
        joined = ops.concat([before, tokens[:, None].astype(before.dtype)], axis=1)
        if min(places) == before.shape[1]:
            return joined
        at = self._column(places, joined)
        return ops.put_along_axis(joined, at, joined[:, -1:], axis=1)[:, : max(places) + 1]

    def join(self, parts: Sequence[State]) -> State:
        """Return the states of several batches as one."""
        width = max(tokens.shape[1] for tokens, _ in parts)
        padded = [
            ops.concat([tokens, *[tokens[:, :1]] * (width - tokens.shape[1])], axis=1)
            for tokens, _ in parts
        ]
        return ops.concat(padded, axis=0), [length for _, lengths in parts for length in lengths]

    def take_rows(self, state: State, rows: Sequence[int]) -> State:
        """Return the state of some rows, in a new order."""
        tokens, lengths = state
        return take(tokens, rows), [lengths[row] for row in rows]

    def _logits(self, tokens: Tensor, lengths: Sequence[int]) -> Tensor:
        mask = padding_mask(lengths, tokens)
        with inference_mode(self.parts):
            if mask is None:
                last: Tensor = self.model(tokens)[:, -1]
                return last
            logits = self.model(tokens, mask)
        at = self._column([length - 1 for length in lengths], tokens)
        return ops.take_along_axis(logits, at[:, :, None], axis=1)[:, 0]

    @staticmethod
    def _column(values: Sequence[int], like: Tensor) -> Tensor:
        """Return integers as a tensor of shape (batch, 1)."""
        return convert_to_tensor(
            [[value] for value in values], dtype="int64", device=like.device, backend=like.backend
        )


def take(x: Tensor, rows: Sequence[int]) -> Tensor:
    """Return some rows of a tensor.

    Args:
        x: Tensor with the batch on the first axis.
        rows: Indices of the rows.
    """
    if list(rows) == list(range(x.shape[0])):
        return x
    indices = convert_to_tensor(list(rows), dtype="int64", device=x.device, backend=x.backend)
    return ops.take(x, indices, axis=0)


def padding_mask(lengths: Sequence[int], tokens: Tensor) -> Tensor | None:
    """Return the padding mask of rows, (batch, time), or None if there is no padding.

    Args:
        lengths: Number of tokens of each row.
        tokens: Integers of shape (batch, time).
    """
    time = tokens.shape[1]
    if min(lengths) == time:
        return None
    rows = [[at < length for at in range(time)] for length in lengths]
    return convert_to_tensor(rows, device=tokens.device, backend=tokens.backend)
