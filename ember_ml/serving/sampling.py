"""Sampling for rows with different options."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Rows
from typing import NamedTuple

from ember_ml import ops
from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.nn.models.decoding.decoder import take
from ember_ml.nn.models.decoding.logits import History, LogitsProcessor
from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.sampling import Sampler, Streams, draw
from ember_ml.serving.sequences import Sequence

_CHUNK = 16
"""Number of random numbers that a row draws at once."""
_BAD = -1
"""Stands for a token that cannot be chosen, because the logits are NaN or infinite."""


class RowSampler:
    """Sampling of one sequence: its random stream, and the history for penalties.

    The tokens are those of `Generator.generate` for the prompt alone with the same seed.

    Args:
        sequence: The sequence.
        like: Logits of the model, for backend, device and vocabulary.
    """

    def __init__(self, sequence: Sequence, like: Tensor) -> None:
        options = sequence.options
        self.sequence = sequence
        self.key = (options.temperature, options.top_k, options.top_p, options.min_p)
        self._streams = Streams([sequence.seed])
        self._draws: deque[float] = deque()
        self.processor: LogitsProcessor | None = None
        self.history = History()
        if _changes_logits(options):
            self.processor = LogitsProcessor(options, like.shape[-1], like)
            self.history = self.processor.start(_integers([sequence.prompt], like))

    def next_draw(self) -> float:
        """Return the next random number of the stream."""
        if not self._draws:
            self._draws.extend(self._streams.take_row(0, 1, _CHUNK))
        return self._draws.popleft()

    def processed(self, logits: Tensor) -> Tensor:
        """Return the logits of this row, (1, vocab_size), with penalties and biases."""
        assert self.processor is not None
        return self.processor(logits, self.history, len(self.sequence.generated))

    def add(self, token: int, like: Tensor) -> None:
        """Record a chosen token."""
        if self.processor is not None:
            self.history = self.processor.add(self.history, _integers([token], like))


def _changes_logits(options: Options) -> bool:
    return bool(
        options.repetition_penalty != 1
        or options.presence_penalty
        or options.frequency_penalty
        or options.logit_bias
        or (options.min_new_tokens and options.stop_ids)
    )


class Choice(NamedTuple):
    """Token that was chosen for a row."""

    token: int
    """Negative if the logits are NaN or infinite."""
    log_prob: float | None = None
    top: tuple[tuple[int, float], ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether no token can be chosen."""
        return self.token < 0


def choose(logits: Tensor, rows: Rows[RowSampler]) -> list[Choice]:
    """Return the next token of each row.

    Rows with the same options are sampled together. Everything is moved to the host at once.

    Args:
        logits: Tensor of shape (rows, vocab_size).
        rows: Sampler of each row.
    """
    scores, order = _scores(logits, rows)
    groups: dict[tuple[object, ...], list[int]] = {}
    for place, row in enumerate(order):
        groups.setdefault(rows[row].key, []).append(place)
    chosen = [
        _sample(take(scores, places), [rows[order[place]] for place in places])
        for places in groups.values()
    ]
    tokens = ops.concat(chosen, axis=0) if len(chosen) > 1 else chosen[0]
    flat = [order[place] for places in groups.values() for place in places]
    values = dict(zip(flat, tokens.tolist(), strict=True))
    result = [Choice(values[row]) for row in range(len(rows))]
    for row, choice in enumerate(result):
        if not choice.is_bad:
            rows[row].add(choice.token, logits)
    return _with_log_probs(logits, rows, result)


def _scores(logits: Tensor, rows: Rows[RowSampler]) -> tuple[Tensor, list[int]]:
    """Return the logits with penalties, in some order of rows, and that order."""
    plain = [at for at, row in enumerate(rows) if row.processor is None]
    if len(plain) == len(rows):
        return logits, plain
    others = [at for at, row in enumerate(rows) if row.processor is not None]
    parts = [take(logits, plain)] if plain else []
    parts += [rows[at].processed(take(logits, [at])) for at in others]
    return ops.concat(parts, axis=0), plain + others


def _sample(scores: Tensor, rows: list[RowSampler]) -> Tensor:
    """Return the tokens of rows with the same options; -1 where there is none."""
    temperature, top_k, top_p, min_p = rows[0].key
    if temperature == 0:
        tokens = ops.argmax(scores, axis=-1)
    else:
        sampler = Sampler(temperature, top_k, top_p, 0, min_p)
        numbers = convert_to_tensor(
            [row.next_draw() for row in rows],
            dtype="float32",
            device=scores.device,
            backend=scores.backend,
        )
        tokens = draw(sampler.probabilities(scores), numbers)
    return ops.where(ops.isfinite(ops.max(scores, axis=-1)), tokens, _BAD)


def _with_log_probs(logits: Tensor, rows: Rows[RowSampler], choices: list[Choice]) -> list[Choice]:
    """Return the choices with log-probabilities, for the rows that report them."""
    counts = {
        at: row.sequence.num_log_probs
        for at, row in enumerate(rows)
        if row.sequence.num_log_probs is not None and not choices[at].is_bad
    }
    if not counts:
        return choices
    wanted = list(counts)
    values = ops.log_softmax(take(logits, wanted).astype("float32"), axis=-1)
    tokens = _integers([[choices[at].token] for at in wanted], logits)
    own = ops.take_along_axis(values, tokens, axis=-1)[:, 0].tolist()
    most = max(counts.values(), key=lambda count: count or 0) or 0
    tops: list[list[tuple[int, float]]] = [[] for _ in wanted]
    if most:
        best = ops.topk(values, min(most, values.shape[-1]), axis=-1)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        tops = [list(zip(*pair, strict=True)) for pair in pairs]
    for place, at in enumerate(wanted):
        top = tuple(tops[place][: counts[at]])
        choices[at] = Choice(choices[at].token, own[place], top)
    return choices


def _integers(values: list[int] | list[list[int]], like: Tensor) -> Tensor:
    return convert_to_tensor(values, dtype="int64", device=like.device, backend=like.backend)
