"""Continuous batching of many sequences on one model."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
import time
from collections.abc import AsyncIterator, Iterable
from collections.abc import Sequence as Several
from typing import Self, Unpack

from ember_ml._core.errors import ArgumentError
from ember_ml.nn.models import Generator
from ember_ml.nn.models.decoding.call import Call
from ember_ml.nn.models.decoding.options import GenerationOptions
from ember_ml.nn.module import inference_mode
from ember_ml.nn.pipeline.asynchronous.admission import Admission
from ember_ml.nn.pipeline.asynchronous.handover import evaluate_module
from ember_ml.nn.pipeline.asynchronous.workers import Scope
from ember_ml.serving.counts import Counts
from ember_ml.serving.errors import EngineError, Overloaded
from ember_ml.serving.limits import Limits
from ember_ml.serving.sequences import Event, Failed, Mailbox, Sequence
from ember_ml.serving.worker import Worker

DEFAULT_LENGTH = 4096
"""Maximum length of a sequence if neither the model nor the limits have one."""


UNSUPPORTED = (
    "num_beams",
    "length_penalty",
    "early_stopping",
    "draft",
    "draft_tokens",
    "allowed",
    "cache",
    "compile",
)
"""Options of `generate` that an engine does not have."""


class Engine:
    """Generation of many sequences at once: they join and leave a running batch at each step.

    One thread owns the model. Every sequence has its own options and random stream, and the tokens
    that `Generator.generate` returns for its prompt alone. Methods must be called on the event loop
    on which the engine was started.

    Args:
        model: Language model with a recurrent form.
        limits: Limits of the batch, the queue and the requests.

    Example:
        >>> import asyncio
        >>> from ember_ml.serving import Engine
        >>> model = nn.models.LanguageModel("gru", 8, 16)
        >>> async def main():
        ...     async with Engine(model) as engine:
        ...         return await asyncio.gather(*(engine.complete([at], 4) for at in range(3)))
        >>> [len(tokens) for tokens in asyncio.run(main())]
        [4, 4, 4]
    """

    def __init__(self, model: Generator, limits: Limits | None = None) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.counts = Counts()
        self.max_length = _max_length(model, self.limits)
        model.initial_state(1)  # a model without a recurrent form raises here
        self._like = model.parameters()[0]
        self._thread: threading.Thread | None = None

    async def start(self) -> Self:
        """Start the thread, on the running event loop."""
        evaluate_module(self.model)
        self._loop = asyncio.get_running_loop()
        self._admission = Admission(self.limits.places)
        self._active: set[Sequence] = set()
        self._scope = Scope()
        self._idle = asyncio.Event()
        self._idle.set()
        self._worker = Worker(self.model, self.limits, self._like, self.counts, self._report)
        self._has_ended = False
        self._thread = threading.Thread(
            target=self._scope.context().run, args=(self._work,), name="ember-engine", daemon=True
        )
        self._thread.start()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _work(self) -> None:
        with self._scope.backend(), inference_mode(list(self.model.modules())):
            try:
                self._worker.run()
            finally:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        """Fail what the thread has not reported, such as sequences that it never received."""
        self._has_ended = True
        for sequence in list(self._active):
            self._deliver([(sequence, Failed(EngineError("the engine has stopped")))])

    @property
    def is_healthy(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and not self._has_ended

    @property
    def is_draining(self) -> bool:
        """Whether no more sequences are accepted."""
        return self._admission.closed

    @property
    def in_flight(self) -> int:
        """Number of accepted sequences without an outcome."""
        return len(self._active)

    def submit(self, sequences: Several[Sequence]) -> None:
        """Accept sequences, all or none.

        Args:
            sequences: The sequences of one request.

        Raises:
            Overloaded: The queue is full.
            PipelineClosed: The engine is shutting down.
            EngineError: The engine has stopped.
        """
        if not self.is_healthy:
            raise EngineError("the engine has stopped")
        if len(sequences) > self._admission.free and not self._admission.closed:
            self.counts.rejected += len(sequences)
            raise Overloaded(
                f"the server is full: {self.limits.max_batch} sequences run and "
                f"{self.limits.queue} wait at most; try again later"
            )
        for sequence in sequences:
            self._admission.try_acquire()
            self._active.add(sequence)
        self.counts.accepted += len(sequences)
        self._idle.clear()
        for sequence in sequences:
            self._worker.inbox.put(sequence)

    async def stream(
        self, prompt: Several[int], max_new_tokens: int = 32, **options: Unpack[GenerationOptions]
    ) -> AsyncIterator[int]:
        """Yield the tokens that follow a prompt, as they are generated.

        Leaving the loop early drops the sequence.

        Args:
            prompt: Tokens of the prompt.
            max_new_tokens: Maximum number of tokens to add.
            options: Options of `Generator.generate`, except beams, draft models, `allowed`,
                `cache` and `compile`.
        """
        sequence = self._sequence(prompt, max_new_tokens, options)
        self.submit([sequence])
        try:
            while not sequence.is_done or sequence.mailbox.has_events:
                for _, event in await sequence.mailbox.take():
                    if isinstance(event, Failed):
                        raise event.error
                    yield event.token
        finally:
            self.cancel([sequence])

    async def complete(
        self, prompt: Several[int], max_new_tokens: int = 32, **options: Unpack[GenerationOptions]
    ) -> list[int]:
        """Return the tokens that follow a prompt.

        The arguments are those of `stream`.
        """
        return [token async for token in self.stream(prompt, max_new_tokens, **options)]

    def _sequence(
        self, prompt: Several[int], max_new_tokens: int, given: GenerationOptions
    ) -> Sequence:
        """Return a checked sequence."""
        model = self.model
        call = Call(model, list(prompt), max_new_tokens, None, None, given)
        options = call.options
        unsupported = [name for name in UNSUPPORTED if name in given]
        if unsupported or not call.count or not call.prompts.is_single:
            raise ArgumentError(
                f"Engine.stream: {unsupported[0]} is not supported"
                if unsupported
                else "Engine.stream: expected one prompt and at least one new token"
            )
        if len(prompt) + call.count > self.max_length:
            raise ArgumentError(
                f"Engine.stream: {len(prompt)} tokens and {call.count} new ones exceed "
                f"max_length={self.max_length} of the engine"
            )
        seed = secrets.randbits(62) if options.seed is None else options.seed
        deadline = time.monotonic() + self.limits.timeout
        own = seed if isinstance(seed, int) else seed[0]
        return Sequence(list(prompt), call.count, options, call.stopping, own, Mailbox(), deadline)

    def cancel(self, sequences: Iterable[Sequence]) -> None:
        """Drop sequences before the next step; those that ended are left out.

        Args:
            sequences: The sequences.
        """
        for sequence in sequences:
            sequence.is_cancelled = True

    def _report(self, events: list[tuple[Sequence, Event]]) -> None:
        """Deliver events from the thread to the event loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._deliver, events)

    def _deliver(self, events: list[tuple[Sequence, Event]]) -> None:
        for sequence, event in events:
            if sequence.is_done:
                continue
            if isinstance(event, Failed) or event.finish_reason is not None:
                sequence.is_done = True
                self._active.discard(sequence)
                self._admission.release()
            sequence.mailbox.put(sequence, event)
        if not self._active:
            self._idle.set()

    def drain(self) -> None:
        """Refuse new sequences and those that wait; the running ones go on."""
        self._admission.close()
        self._worker.is_draining = True
        self._worker.inbox.put(None)

    async def wait_idle(self, timeout: float) -> bool:
        """Wait until no sequence is in flight; return whether that is so.

        Args:
            timeout: Seconds to wait at most.
        """
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout)
        return self._idle.is_set()

    async def aclose(self, timeout: float = 10.0) -> None:
        """Fail all sequences, and end the thread.

        Args:
            timeout: Seconds to wait for a step that runs.
        """
        if self._thread is None:
            return
        self.drain()
        self._worker.is_stopping = True
        self._worker.inbox.put(None)
        await asyncio.to_thread(self._thread.join, timeout)
        await asyncio.sleep(0)  # deliver the last events


def _max_length(model: Generator, limits: Limits) -> int:
    """Return the maximum number of tokens of a sequence."""
    own = model.max_length
    if limits.max_length is None:
        return own or DEFAULT_LENGTH
    if own is not None and limits.max_length > own:
        raise ArgumentError(
            f"Engine: max_length={limits.max_length} exceeds max_length={own} of the model"
        )
    return limits.max_length
