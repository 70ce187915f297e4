"""Beam search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.decoding.call import Call
from ember_ml.nn.models.decoding.decoder import take
from ember_ml.nn.models.decoding.logits import History
from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.decoding.result import FinishReason, Generation
from ember_ml.nn.models.decoding.stopping import Stopping

_EXCLUDED = -1e9
"""Score of a beam that must not be continued. Sums with it are finite."""


class Beam(NamedTuple):
    """New tokens of a sequence and their score."""

    score: float
    tokens: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    source: int = 0
    """Index of the beam that it continues."""
    has_stopped: bool = False


class Search:
    """Beams of one prompt.

    Args:
        options: Options of the call.
        stopping: Stop conditions.
        count: Maximum number of new tokens.
    """

    def __init__(self, options: Options, stopping: Stopping, count: int) -> None:
        self.options = options
        self.stopping = stopping
        self.count = count
        # All beams are equal at first: only the first one is continued.
        self.running = [Beam(0.0), *[Beam(_EXCLUDED)] * (options.num_beams - 1)]
        self.complete: list[Beam] = []
        self.is_done = False

    def advance(self, candidates: Sequence[Beam]) -> None:
        """Choose the beams to continue, and those that are complete.

        Args:
            candidates: The best continuations of the running beams, best first.
        """
        size = self.options.num_beams
        length = len(candidates[0].tokens)
        marked = [each._replace(has_stopped=self.stopping.ends(each.tokens)) for each in candidates]
        ends = [each.has_stopped or length == self.count for each in marked]
        scores = [
            each.score + _EXCLUDED if end else each.score
            for each, end in zip(marked, ends, strict=True)
        ]
        best = sorted(range(len(marked)), key=lambda at: -scores[at])[:size]
        self.running = [marked[at]._replace(score=scores[at]) for at in best]
        # Continuations beyond the first ones only replace those that end.
        self._add([each for each, end in zip(marked[:size], ends[:size], strict=True) if end])
        is_full = len(self.complete) == size
        self.is_done = (
            all(ends)
            or (is_full and self.options.early_stopping is True)
            or (is_full and not self._can_improve(length))
        )

    def _add(self, beams: Sequence[Beam]) -> None:
        """Add complete sequences, and keep the best ones."""
        penalty = self.options.length_penalty
        scored = [each._replace(score=each.score / len(each.tokens) ** penalty) for each in beams]
        self.complete = sorted([*self.complete, *scored], key=lambda each: -each.score)
        del self.complete[self.options.num_beams :]

    def _can_improve(self, length: int) -> bool:
        """Return whether a running beam may become better than the worst complete one."""
        penalty = self.options.length_penalty
        if self.options.early_stopping == "never" and penalty > 0:
            length = self.count
        return self.running[0].score / length**penalty > self.complete[-1].score


def search(call: Call, log_probs: bool = False) -> Generation:
    """Return the best sequences of beam search.

    Args:
        call: Prompts and options. Its samples are the best beams of each prompt.
        log_probs: Whether the result has log-probabilities.
    """
    size, wanted = call.options.num_beams, call.samples
    if wanted > size:
        raise ArgumentError(f"{call.name}.generate: num_samples={wanted} exceeds num_beams={size}")
    choices = call.stopping.choices
    if choices is not None and wanted > choices.count:
        raise ArgumentError(
            f"{call.name}.generate: num_samples={wanted} exceeds the {choices.count} sequences of "
            "allowed"
        )
    searches = [Search(call.options, call.stopping, call.count) for _ in call.prompts.lengths]
    _run(call, searches)
    prompts = call.prompts.rows
    best = [(row, beam) for row, each in enumerate(searches) for beam in _best(each, wanted)]
    reasons: list[FinishReason] = ["stop" if beam.has_stopped else "length" for _, beam in best]
    return Generation(
        [prompts[row] for row, _ in best],
        [list(beam.tokens) for _, beam in best],
        reasons,
        [list(beam.log_probs) for _, beam in best] if log_probs else None,
        [beam.score for _, beam in best],
    )


def _best(search: Search, count: int) -> list[Beam]:
    """Return the best sequences; running ones only if too few are complete."""
    return [*search.complete, *search.running][:count]


def _run(call: Call, searches: list[Search]) -> None:
    """Advance all searches until they are done."""
    size = call.options.num_beams
    active = list(range(len(searches)))
    tokens, lengths = call.prompts.tokens, call.prompts.lengths
    if not call.count:
        return
    logits, state = call.decoder.prefill(tokens, lengths)
    rows = [row for row in active for _ in range(size)]
    logits, state = take(logits, rows), call.decoder.take_rows(state, rows)
    history = call.processor.start(take(tokens, rows))
    while True:
        groups = [searches[row] for row in active]
        _advance(call, active, groups, logits, history)
        rows = [
            at * size + beam.source
            for at, each in enumerate(groups)
            if not each.is_done
            for beam in each.running
        ]
        active = [row for row in active if not searches[row].is_done]
        if not active:
            return
        logits, state, history = _step(call, searches, active, rows, state, history)


def _advance(
    call: Call, active: list[int], groups: list[Search], logits: Tensor, history: History
) -> None:
    """Choose the best continuations of the beams of several prompts."""
    beams = [beam for each in groups for beam in each.running]
    at = len(beams[0].tokens)
    model = ops.log_softmax(logits.astype("float32"), axis=-1)
    values = call.scores(model, history, [beam.tokens for beam in beams], at)
    before = convert_to_tensor(
        [[beam.score] for beam in beams],
        dtype="float32",
        device=logits.device,
        backend=logits.backend,
    )
    vocab, shape = logits.shape[-1], (len(groups), -1)
    width = max(2, 1 + len(call.stopping.ids)) * call.options.num_beams
    totals = ops.reshape(values + before, shape)
    best, indices = ops.topk(totals, min(width, totals.shape[1]))
    parts = [
        best,
        (indices // vocab).astype("float32"),  # exact: both are less than 2**24
        (indices % vocab).astype("float32"),
        ops.take_along_axis(ops.reshape(model, shape), indices, axis=-1),
        ops.reshape(ops.isfinite(ops.max(values, axis=-1)), shape).astype("float32"),
    ]
    width = best.shape[1]
    table = ops.concat(parts, axis=1).tolist()  # the only transfer
    for prompt, group, row in zip(active, groups, table, strict=True):
        if not all(row[4 * width :]):
            raise call.non_finite(prompt * call.samples, at)
        _advance_one(group, row, width)


def _advance_one(search: Search, row: list[float], width: int) -> None:
    """Advance the search of one prompt with scores, sources, tokens and log-probabilities."""
    columns = [row[at * width : (at + 1) * width] for at in range(4)]
    candidates = []
    for score, source, token, log_prob in zip(*columns, strict=True):
        parent = search.running[int(source)]
        tokens, log_probs = (*parent.tokens, int(token)), (*parent.log_probs, log_prob)
        candidates.append(Beam(score, tokens, log_probs, int(source)))
    search.advance(candidates)


def _step(
    call: Call,
    searches: list[Search],
    active: list[int],
    rows: list[int],
    state: Any,
    history: History,
) -> tuple[Tensor, Any, History]:
    """Return logits, state and history after the tokens of the running beams."""
    beams = [beam for row in active for beam in searches[row].running]
    like = call.prompts.tokens
    tokens = convert_to_tensor(
        [beam.tokens[-1] for beam in beams],
        dtype="int64",
        device=like.device,
        backend=like.backend,
    )
    history = call.processor.add(history.take_rows(rows), tokens)
    logits, state = call.decoder.step(tokens, call.decoder.take_rows(state, rows))
    return logits, state, history
