"""Tokens that a draft model proposes, and what the model makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.decoding.logits import History, join_histories
from ember_ml.nn.models.decoding.loop import token_log_probs
from ember_ml.nn.models.sampling import draw

if TYPE_CHECKING:
    from ember_ml.nn.models.decoding.speculative import SpeculativeLoop


class Position(NamedTuple):
    """Logits of the next tokens of a model, and its state before them."""

    logits: Tensor
    state: Any


class Place(NamedTuple):
    """Place of some rows in their sequences."""

    rows: list[int]
    model: Position
    draft: Position
    history: History


class Round:
    """One proposal of the draft model for some rows, and the tokens that result from it.

    Args:
        loop: The loop.
        place: The rows, which have an equal number of tokens to propose.
    """

    def __init__(self, loop: SpeculativeLoop, place: Place) -> None:
        self.loop, self.call, self.place = loop, loop.call, place
        self.count = loop.drafted(place.rows[0])
        streams, rows = loop.sampler.streams, len(self.call.order)
        draws = [streams.take_row(row, rows, 2 * self.count + 1) for row in place.rows]
        self.thresholds = [values[self.count : -1] for values in draws]
        self.uniforms = self._tensor([[*each[: self.count], each[-1]] for each in draws], "float32")
        self.histories = [place.history]
        self.proposed: list[Tensor] = []
        self.odds: list[Tensor] = []
        self.values = [list(loop.generated[row]) for row in place.rows]
        """Tokens so far and proposed ones, where choices are constrained."""
        self._propose()
        self.logits, self.end = [place.model.logits], place.model.state
        if self.count:
            tokens = ops.stack(self.proposed, axis=1)
            logits, self.end = self.call.decoder.extend(tokens, place.model.state)
            self.logits += [logits[:, at] for at in range(self.count)]

    def _tensor(self, values: list[Any], dtype: str) -> Tensor:
        like = self.call.prompts.tokens
        return convert_to_tensor(values, dtype=dtype, device=like.device, backend=like.backend)

    def _scores(self, logits: Tensor, at: int) -> Tensor:
        """Return the logits from which the tokens after `at` proposed ones are chosen."""
        before = [self.loop.generated[row] for row in self.place.rows]
        values = [each[: len(b) + at] for each, b in zip(self.values, before, strict=True)]
        return self.call.scores(logits, self.histories[at], values, [len(b) + at for b in before])

    def _propose(self) -> None:
        """Sample tokens from the draft model."""
        call, position = self.call, self.place.draft
        for at in range(self.count):
            odds = self.loop.sampler.probabilities(self._scores(position.logits, at))
            tokens = draw(odds, self.uniforms[:, at])
            self.odds.append(odds)
            self.proposed.append(tokens)
            self.histories.append(call.processor.add(self.histories[-1], tokens))
            if call.stopping.choices is not None:
                for values, token in zip(self.values, tokens.tolist(), strict=True):
                    values.append(token)
            if at + 1 < self.count:
                position = Position(*self.loop.draft.step(tokens, position.state))

    def result(self) -> tuple[list[list[int]], list[list[float]]]:
        """Return the new tokens of each row, at least one, and their log-probabilities."""
        scores = [self._scores(logits, at) for at, logits in enumerate(self.logits)]
        target = [self.loop.sampler.probabilities(each) for each in scores]
        ratios, replacements = [], []
        for at, tokens in enumerate(self.proposed):
            chance, odds = (
                ops.take_along_axis(each, tokens[:, None], axis=-1)[:, 0]
                for each in (target[at], self.odds[at])
            )
            ratios.append(chance / odds)
            rest = target[at] - self.odds[at]
            rest = ops.where(rest > 0, rest, ops.zeros_like(rest))
            replacements.append(draw(rest, self.uniforms[:, -1]))
        replacements.append(draw(target[-1], self.uniforms[:, -1]))
        log_probs = [
            token_log_probs(logits, token)
            for tokens in (self.proposed, replacements)
            for logits, token in zip(self.logits, tokens, strict=False)
        ]
        finite = [ops.isfinite(ops.max(each, axis=-1)) for each in scores]
        parts = [*ratios, *self.proposed, *replacements, *finite, *log_probs]
        table = ops.stack([part.astype("float32") for part in parts], axis=1)
        rows = enumerate(table.tolist())  # the only transfer of the round
        accepted = [self._accept(at, values) for at, values in rows]
        self.tokens = [tokens for tokens, _ in accepted]
        return self.tokens, [log_probs for _, log_probs in accepted]

    def _accept(self, row: int, values: list[float]) -> tuple[list[int], list[float]]:
        """Return the accepted tokens of a row and the one after them."""
        count = self.count
        ratios, proposed, rest = values[:count], values[count : 2 * count], values[2 * count :]
        replacements, finite, log_probs = (
            rest[: count + 1],
            rest[count + 1 : 2 * count + 2],
            rest[2 * count + 2 :],
        )
        accepted = 0
        while (
            accepted < count
            and finite[accepted]
            and self.thresholds[row][accepted] < ratios[accepted]
        ):
            accepted += 1
        if not finite[accepted]:
            index = self.place.rows[row]
            raise self.call.non_finite(index, len(self.loop.generated[index]) + accepted)
        tokens = [int(token) for token in [*proposed[:accepted], replacements[accepted]]]
        return tokens, [*log_probs[:accepted], log_probs[count + accepted]]

    def advance(self, going: list[int]) -> Place:
        """Return the place of rows after the tokens of the round.

        Args:
            going: Rows of the round that have not ended.
        """
        loop, call = self.loop, self.call
        lengths = [len(self.tokens[at]) for at in going]
        tokens = self._tensor(
            [self.tokens[at] + [0] * (max(lengths) - len(self.tokens[at])) for at in going], "int64"
        )
        before = loop.take(self.place, going)
        draft = Position(*loop.draft.prefill(tokens, lengths, before.draft.state))
        if min(lengths) == self.count + 1 and len(going) == len(self.tokens):
            model = Position(*call.decoder.step(tokens[:, -1], self.end))
        else:  # the state has tokens that were not accepted: start again from the one before
            model = Position(*call.decoder.prefill(tokens, lengths, before.model.state))
        size = len(self.tokens)
        accepted = [(length - 1) * size + at for length, at in zip(lengths, going, strict=True)]
        history = join_histories(self.histories).take_rows(accepted)
        last = self._tensor([self.tokens[at][-1] for at in going], "int64")
        return Place(before.rows, model, draft, call.processor.add(history, last))
