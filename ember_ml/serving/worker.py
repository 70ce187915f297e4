"""The thread that owns the model: it admits, prefills, steps and reports."""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable

from ember_ml._core.tensor import Tensor
from ember_ml.nn import states
from ember_ml.nn.models import Generator
from ember_ml.nn.models.decoding.call import NonFiniteLogitsError
from ember_ml.serving.batch import PrefillGroup, RunningBatch
from ember_ml.serving.counts import Counts
from ember_ml.serving.errors import DeadlineExceeded, EngineError, PipelineClosed
from ember_ml.serving.limits import Limits
from ember_ml.serving.sampling import Choice, RowSampler, choose
from ember_ml.serving.sequences import Event, Failed, NewToken, Sequence

_LOG = logging.getLogger(__name__)
Report = Callable[[list[tuple[Sequence, Event]]], None]
"""Function that delivers events."""


class Worker:
    """Continuous batching in one thread.

    A round drops sequences that were cancelled or expired, admits waiting ones, processes one chunk
    of their prompts, and generates one token of each running sequence.

    Args:
        model: The model, in inference mode.
        limits: Limits of the batch.
        like: Tensor on the backend and device of the model.
        counts: Measurements.
        report: Called at the end of a round with the events.
    """

    def __init__(
        self, model: Generator, limits: Limits, like: Tensor, counts: Counts, report: Report
    ) -> None:
        self.limits = limits
        self.counts = counts
        self.inbox: queue.SimpleQueue[Sequence | None] = queue.SimpleQueue()
        """New sequences. None only wakes the thread."""
        self.is_draining = False
        """Whether sequences that have not started fail."""
        self.is_stopping = False
        """Whether all sequences fail, and the thread ends."""
        self._report = report
        self._waiting: deque[Sequence] = deque()
        self._prefill = PrefillGroup(model, limits.prefill_chunk, like)
        self._running = RunningBatch(model, like)
        self._events: list[tuple[Sequence, Event]] = []

    def run(self) -> None:
        """Run rounds until the worker is stopped."""
        try:
            while not self.is_stopping:
                self._receive()
                self._round()
        finally:
            self._fail(self._everything(), PipelineClosed("the server was stopped"))
            self._flush()

    def _everything(self) -> list[Sequence]:
        return [
            *self._waiting,
            *self._prefill.sequences,
            *(row.sequence for row in self._running.rows),
        ]

    def _receive(self) -> None:
        """Move new sequences to the queue; wait for one if there is nothing to do."""
        is_idle = not (self._waiting or self._prefill.sequences or self._running.rows)
        while True:
            try:
                sequence = self.inbox.get(block=is_idle)
            except queue.Empty:
                return
            is_idle = False
            if sequence is not None:
                self._waiting.append(sequence)

    def _round(self) -> None:
        now = time.monotonic()
        self._waiting = deque(each for each in self._waiting if self._stays(each, now, True))
        while self._waiting and self._fits(self._waiting[0]):
            self._admit(self._waiting.popleft())
        prefilling = self._prefill.sequences
        self._guarded(lambda: self._advance(now), prefilling, self._prefill.clear)
        self._flush()  # the first tokens do not wait for the step
        running = [row.sequence for row in self._running.rows]
        self._guarded(lambda: self._step(now), running, self._running.clear)
        self.counts.waiting = len(self._waiting)
        self.counts.prefilling = len(self._prefill.sequences)
        self.counts.running = len(self._running.rows)
        self._flush()

    def _guarded(
        self, work: Callable[[], None], sequences: list[Sequence], clear: Callable[[], None]
    ) -> None:
        """Do some work; if it raises, the sequences fail, and the others go on."""
        try:
            work()
        except Exception as error:
            self.counts.engine_errors += 1
            _LOG.exception("the computation of %d sequences failed", len(sequences))
            clear()
            failure = EngineError(f"{type(error).__name__}: {error}")
            failure.__cause__ = error
            ended = {each for each, event in self._events if _is_end(event)}
            self._fail([each for each in sequences if each not in ended], failure)

    def _stays(self, sequence: Sequence, now: float, is_waiting: bool = False) -> bool:
        if sequence.is_cancelled:
            self.counts.cancelled += 1
            self._events.append((sequence, Failed(PipelineClosed("the request was cancelled"))))
            return False
        if now > sequence.deadline:
            where = "while the request waited" if is_waiting else "during generation"
            error = DeadlineExceeded(
                f"the time limit passed {where}; it is {self.limits.timeout} s"
            )
            self._fail([sequence], error)
            return False
        if is_waiting and self.is_draining:
            self._fail([sequence], PipelineClosed("the server is shutting down"))
            return False
        return True

    def _admit(self, sequence: Sequence) -> None:
        self._guarded(lambda: self._prefill.add(sequence), [sequence], lambda: None)

    def _fits(self, sequence: Sequence) -> bool:
        active = [*self._prefill.sequences, *(row.sequence for row in self._running.rows)]
        if len(active) >= self.limits.max_batch or not self._prefill.has_room(sequence.prompt):
            return False
        if self.limits.max_cached_tokens is None or not active:
            return True
        longest = max(each.max_length for each in [sequence, *active])
        return (len(active) + 1) * longest <= self.limits.max_cached_tokens

    def _advance(self, now: float) -> None:
        """Process one chunk of the prompts; those that are complete start to generate."""
        sequences = self._prefill.sequences
        self._prefill.keep([n for n, each in enumerate(sequences) if self._stays(each, now)])
        ready = self._prefill.advance() if self._prefill.sequences else None
        if ready is None:
            return
        self.counts.prompt_tokens += sum(len(each.prompt) for each in ready.sequences)
        rows = [RowSampler(sequence, ready.logits) for sequence in ready.sequences]
        kept = self._emit(rows, choose(ready.logits, rows))
        if kept:
            everything = len(kept) == len(rows)
            state = ready.state if everything else states.take_rows(ready.state, kept)
            self._running.join([rows[at] for at in kept], state)

    def _step(self, now: float) -> None:
        """Generate one token of each running sequence."""
        rows = self._running.rows
        self._running.keep([n for n, row in enumerate(rows) if self._stays(row.sequence, now)])
        rows = self._running.rows
        if not rows:
            return
        started = time.perf_counter()
        choices = choose(self._running.step(), rows)
        self.counts.step(len(rows), time.perf_counter() - started)
        self._running.keep(self._emit(rows, choices))

    def _emit(self, rows: list[RowSampler], choices: list[Choice]) -> list[int]:
        """Record the tokens of rows; return the indices of those that go on."""
        kept = []
        for at, (row, choice) in enumerate(zip(rows, choices, strict=True)):
            sequence = row.sequence
            if choice.is_bad:
                self._fail([sequence], _non_finite(sequence))
                continue
            reason = sequence.add(choice.token)
            event = NewToken(choice.token, choice.log_prob, choice.top, reason)
            self._events.append((sequence, event))
            self.counts.token(sequence)
            if reason is None:
                kept.append(at)
            else:
                self.counts.completed += 1
        return kept

    def _fail(self, sequences: list[Sequence], error: Exception) -> None:
        for sequence in sequences:
            self.counts.fail(error)
            self._events.append((sequence, Failed(error)))

    def _flush(self) -> None:
        events, self._events = self._events, []
        if events:
            self._report(events)


def _is_end(event: Event) -> bool:
    return isinstance(event, Failed) or event.finish_reason is not None


def _non_finite(sequence: Sequence) -> NonFiniteLogitsError:
    return NonFiniteLogitsError(
        f"the logits at position {sequence.length} (new token {len(sequence.generated)}) are NaN "
        "or infinite, or exclude every token; check the weights of the model and logit_bias"
    )
