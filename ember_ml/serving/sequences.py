"""Sequences that an engine generates."""

from __future__ import annotations

import asyncio
import time
from typing import Literal, NamedTuple, TypeAlias

from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.decoding.stopping import Stopping

FinishReason: TypeAlias = Literal["stop", "length"]


class NewToken(NamedTuple):
    """Token that was generated."""

    token: int
    log_prob: float | None = None
    """Log-probability under the model, before penalties and temperature, if requested."""
    top: tuple[tuple[int, float], ...] = ()
    """The most likely tokens and their log-probabilities, if requested."""
    finish_reason: FinishReason | None = None
    """Why the sequence ended with this token; None if it goes on."""


class Failed(NamedTuple):
    """End of a sequence by an error."""

    error: Exception


Event: TypeAlias = NewToken | Failed


class Mailbox:
    """Events of the sequences of one request, for a consumer on the event loop."""

    def __init__(self) -> None:
        self._events: list[tuple[Sequence, Event]] = []
        self._ready = asyncio.Event()

    @property
    def has_events(self) -> bool:
        """Whether there are events that were not taken."""
        return bool(self._events)

    def put(self, sequence: Sequence, event: Event) -> None:
        """Add an event; on the event loop only."""
        self._events.append((sequence, event))
        self._ready.set()

    async def take(self) -> list[tuple[Sequence, Event]]:
        """Return all events since the last call; wait until there is at least one."""
        await self._ready.wait()
        self._ready.clear()
        events, self._events = self._events, []
        return events


class Sequence:
    """Prompt with its options, and what was generated so far.

    Args:
        prompt: Tokens of the prompt, at least one.
        max_new_tokens: Maximum number of tokens to generate.
        options: Options of sampling.
        stopping: What ends the sequence.
        seed: Seed of the random stream.
        mailbox: Receiver of the events.
        deadline: Value of `time.monotonic` after which the sequence fails.
        num_log_probs: Number of most likely tokens to report with each token. None: no
            log-probabilities at all.
        index: Index among the sequences of the request.
    """

    def __init__(
        self,
        prompt: list[int],
        max_new_tokens: int,
        options: Options,
        stopping: Stopping,
        seed: int,
        mailbox: Mailbox,
        deadline: float,
        num_log_probs: int | None = None,
        index: int = 0,
    ) -> None:
        self.prompt = prompt
        self.max_new_tokens = max_new_tokens
        self.options = options
        self.stopping = stopping
        self.seed = seed
        self.mailbox = mailbox
        self.deadline = deadline
        self.num_log_probs = num_log_probs
        self.index = index
        self.arrival = time.monotonic()
        self.first_token_at: float | None = None
        self.generated: list[int] = []
        self.is_cancelled = False
        """Set by the event loop; the engine drops the sequence before its next step."""
        self.is_done = False
        """Whether the last event was delivered; set on the event loop."""

    @property
    def max_length(self) -> int:
        """Largest possible number of tokens of prompt and completion."""
        return len(self.prompt) + self.max_new_tokens

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return len(self.prompt) + len(self.generated)

    def add(self, token: int) -> FinishReason | None:
        """Append a token; return why the sequence ends with it, or None.

        Args:
            token: The token.
        """
        self.generated.append(token)
        if self.stopping.ends(self.generated):
            return "stop"
        return "length" if len(self.generated) >= self.max_new_tokens else None
