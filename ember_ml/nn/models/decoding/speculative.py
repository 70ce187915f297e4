"""Speculative decoding: a draft model proposes tokens, the model accepts or replaces them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ember_ml import ops
from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn.models.decoding.call import Call
from ember_ml.nn.models.decoding.decoder import take
from ember_ml.nn.models.decoding.logits import join_histories
from ember_ml.nn.models.decoding.proposals import Place, Position, Round
from ember_ml.nn.models.decoding.result import FinishReason, Generation
from ember_ml.nn.models.sampling import Sampler


class SpeculativeLoop:
    """Tokens of a call, distributed as the model alone distributes them.

    In each round the draft model samples some tokens, and the model computes the probabilities of
    all of them at once. Each token is accepted with probability min(1, p / q), where p is its
    probability under the model and q that under the draft. The first token that is not accepted is
    replaced with a sample from max(0, p - q), normalized. With temperature 0 the result is that of
    the model alone.

    Reference: Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023.

    Args:
        call: Prompts and options.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.draft = call.new_decoder(_checked_draft(call))
        options = call.options
        self.sampler = Sampler(
            options.temperature, options.top_k, options.top_p, options.seed, options.min_p
        )
        self.generated: list[list[int]] = [[] for _ in call.order]
        self.log_probs: list[list[float]] = [[] for _ in call.order]
        self.has_stopped = [False] * len(call.order)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield rows and their next tokens."""
        place = self._start() if self.call.count else None
        while place is not None:
            places = []
            for part in self._parts(place):
                round_ = Round(self, part)
                for row, tokens, log_probs in zip(part.rows, *round_.result(), strict=True):
                    yield from ((row, token) for token in self._add(row, tokens, log_probs))
                going = [at for at, row in enumerate(part.rows) if self._left(row)]
                if going:
                    places.append(round_.advance(going))
            place = self._joined(places) if places else None

    def _left(self, row: int) -> int:
        """Return the number of tokens that a row may still have."""
        return 0 if self.has_stopped[row] else self.call.count - len(self.generated[row])

    def drafted(self, row: int) -> int:
        """Return the number of tokens to propose for a row. It does not depend on other rows."""
        return min(self.call.options.draft_tokens, self._left(row) - 1)

    def _start(self) -> Place:
        call, order = self.call, self.call.order
        tokens = take(call.prompts.tokens, order)
        lengths = [call.prompts.lengths[row] for row in order]
        draft = Position(*self.draft.prefill(tokens, lengths))
        logits, state, history = call.start()
        return Place(list(range(len(order))), Position(logits, state), draft, history)

    def _parts(self, place: Place) -> Iterator[Place]:
        """Yield the rows with an equal number of tokens to propose."""
        counts = [self.drafted(row) for row in place.rows]
        for count in sorted(set(counts)):
            yield self.take(place, [at for at, each in enumerate(counts) if each == count])

    def take(self, place: Place, rows: list[int]) -> Place:
        """Return the place of some rows."""
        if len(rows) == len(place.rows):
            return place
        pairs = ((self.call.decoder, place.model), (self.draft, place.draft))
        model, draft = (
            Position(take(at.logits, rows), decoder.take_rows(at.state, rows))
            for decoder, at in pairs
        )
        kept = [place.rows[at] for at in rows]
        return Place(kept, model, draft, place.history.take_rows(rows))

    def _joined(self, places: list[Place]) -> Place:
        """Return the places of all rows as one."""
        if len(places) == 1:
            return places[0]
        rows = [row for place in places for row in place.rows]
        model, draft = (
            Position(
                ops.concat([at.logits for at in each], axis=0),
                decoder.join([at.state for at in each]),
            )
            for decoder, each in (
                (self.call.decoder, [place.model for place in places]),
                (self.draft, [place.draft for place in places]),
            )
        )
        return Place(rows, model, draft, join_histories([place.history for place in places]))

    def _add(self, row: int, tokens: list[int], log_probs: list[float]) -> Iterator[int]:
        """Add new tokens to a row until it ends, and yield them."""
        for token, log_prob in zip(tokens, log_probs, strict=True):
            self.generated[row].append(token)
            self.log_probs[row].append(log_prob)
            self.has_stopped[row] = self.call.stopping.ends(self.generated[row])
            yield token
            if not self._left(row):
                return


def speculate(call: Call, log_probs: bool = False) -> Generation:
    """Return sequences from speculative decoding.

    Args:
        call: Prompts and options.
        log_probs: Whether the result has log-probabilities.
    """
    loop = SpeculativeLoop(call)
    for _ in loop:
        pass
    prompts = call.prompts.rows
    reasons: list[FinishReason] = ["stop" if stopped else "length" for stopped in loop.has_stopped]
    return Generation(
        [prompts[row] for row in call.order],
        loop.generated,
        reasons,
        loop.log_probs if log_probs else None,
    )


def _checked_draft(call: Call) -> Any:
    """Return the draft model of a call, or raise an error if it does not fit the model."""
    from ember_ml.nn.models.generation import Generator

    draft, model = call.options.draft, call.model
    if not isinstance(draft, Generator):
        raise ArgumentTypeError(
            f"{call.name}.generate: draft must be a language model, not {type(draft).__name__}"
        )
    if draft.vocab_size != model.vocab_size:
        raise ArgumentError(
            f"{call.name}.generate: draft has {draft.vocab_size} tokens in the vocabulary, the "
            f"model has {model.vocab_size}; both must be the same"
        )
    backends = [each.parameters()[0].backend for each in (model, draft)]
    if backends[0] != backends[1]:
        raise ArgumentError(
            f"{call.name}.generate: the model is on {backends[0]}, the draft on {backends[1]}; "
            f"move it with draft.to_backend({backends[0]!r})"
        )
    call.check_length(draft)
    return draft
