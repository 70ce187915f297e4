"""Requests for generation: their sequences, and the text that arrives for each."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ember_ml.nn.models.decoding.tokenizers import TextTokenizer
from ember_ml.serving.api_errors import of_exception
from ember_ml.serving.engine import Engine
from ember_ml.serving.sequences import Failed, FinishReason, Mailbox, NewToken, Sequence
from ember_ml.serving.text import TextStream


@dataclass
class Delta:
    """What is new of a choice."""

    text: str = ""
    tokens: list[NewToken] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    """Position of each token in the text of the choice."""
    finish_reason: FinishReason | None = None

    def extend(self, other: Delta) -> None:
        """Append what came later.

        Args:
            other: What came later.
        """
        self.text += other.text
        self.tokens += other.tokens
        self.offsets += other.offsets
        self.finish_reason = other.finish_reason


class Choice:
    """Sequence of a request, as text.

    Args:
        sequence: The sequence.
        tokenizer: Tokenizer of the model, if there is one.
        prefix: Text before the first token, such as the prompt that is echoed.
    """

    def __init__(
        self, sequence: Sequence, tokenizer: TextTokenizer | None, prefix: str = ""
    ) -> None:
        self.sequence = sequence
        self.index = sequence.index
        self.is_first = True
        """Whether nothing was taken so far."""
        self._text = TextStream(tokenizer, sequence.prompt, sequence.stopping.strings)
        self._length = len(prefix)
        self._delta = Delta(prefix)

    def push(self, event: NewToken) -> None:
        """Add a token."""
        delta = self._delta
        piece = self._text.push(event.token)
        if event.finish_reason is not None:
            piece += self._text.finish()
            delta.finish_reason = event.finish_reason
        delta.tokens.append(event)
        delta.offsets.append(self._length)
        delta.text += piece
        self._length += len(piece)

    def take(self) -> Delta | None:
        """Return what is new since the last call; None if there is no complete character."""
        delta = self._delta
        if not delta.text and delta.finish_reason is None:
            return None
        self._delta = Delta()
        return delta


class Job:
    """Sequences of one request.

    Args:
        engine: Engine that generates them.
        choices: The choices.
        mailbox: Mailbox of the sequences.
        deadline: Value of `time.monotonic` at which the request fails.
    """

    def __init__(
        self, engine: Engine, choices: list[Choice], mailbox: Mailbox, deadline: float
    ) -> None:
        self.engine = engine
        self.choices = choices
        self.deadline = deadline
        self._mailbox = mailbox

    @property
    def seconds_left(self) -> float:
        """Time until the deadline."""
        return self.deadline - time.monotonic()

    def submit(self) -> None:
        """Hand the sequences to the engine."""
        try:
            self.engine.submit([choice.sequence for choice in self.choices])
        except Exception as error:
            raise of_exception(error) from error

    def cancel(self) -> None:
        """Drop the sequences that have not ended."""
        self.engine.cancel(choice.sequence for choice in self.choices)

    async def deltas(self) -> AsyncIterator[list[tuple[Choice, Delta]]]:
        """Yield what is new of the choices, until all have ended.

        Raises:
            ApiError: A sequence failed.
        """
        choices = {choice.sequence: choice for choice in self.choices}
        left = len(choices)
        while left:
            changed: dict[Choice, None] = {}
            for sequence, event in await self._mailbox.take():
                if isinstance(event, Failed):
                    raise of_exception(event.error) from event.error
                choices[sequence].push(event)
                changed[choices[sequence]] = None
                left -= event.finish_reason is not None
            taken = [(choice, choice.take()) for choice in changed]
            news = [(choice, delta) for choice, delta in taken if delta is not None]
            if news:
                yield news

    @property
    def usage(self) -> dict[str, int]:
        """Numbers of tokens, as in OpenAI's API."""
        prompts = {id(choice.sequence.prompt): choice.sequence.prompt for choice in self.choices}
        prompt = sum(map(len, prompts.values()))  # the choices of a prompt share it
        new = sum(len(choice.sequence.generated) for choice in self.choices)
        return {"prompt_tokens": prompt, "completion_tokens": new, "total_tokens": prompt + new}
