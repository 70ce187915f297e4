"""Running batch: sequences join and leave it between two steps."""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.tensor import Tensor
from ember_ml.nn import states
from ember_ml.nn.models import Generator
from ember_ml.nn.states import State
from ember_ml.serving.sampling import RowSampler
from ember_ml.serving.sequences import Sequence


class Ready(NamedTuple):
    """Sequences whose prompts were processed."""

    sequences: list[Sequence]
    logits: Tensor
    """Logits after the last token of each prompt."""
    state: State


class PrefillGroup:
    """Prompts that are processed together, in chunks.

    Args:
        model: The model.
        chunk: Maximum number of tokens of a prompt that are processed at once.
        like: Tensor on the backend and device of the model.
    """

    def __init__(self, model: Generator, chunk: int, like: Tensor) -> None:
        self.model = model
        self.chunk = chunk
        self.like = like
        self.clear()

    def clear(self) -> None:
        """Remove all prompts."""
        self.sequences: list[Sequence] = []
        self.done: list[int] = []
        """Number of tokens of each prompt that were processed."""
        self.state: State = None

    def has_room(self, prompt: list[int]) -> bool:
        """Return whether one more prompt keeps a chunk within twice its number of tokens.

        Args:
            prompt: Tokens of the prompt.
        """
        left = [len(each.prompt) - n for each, n in zip(self.sequences, self.done, strict=True)]
        width = min(self.chunk, max([len(prompt), *left]))
        return not left or (len(left) + 1) * width <= 2 * self.chunk

    def add(self, sequence: Sequence) -> None:
        """Add a prompt.

        Args:
            sequence: Sequence with the prompt.
        """
        fresh = self.model.initial_state(1)
        self.state = fresh if not self.sequences else states.join([self.state, fresh])
        self.sequences.append(sequence)
        self.done.append(0)

    def advance(self) -> Ready | None:
        """Process one chunk; return the sequences whose prompts are complete, if any."""
        parts = [
            each.prompt[n : n + self.chunk]
            for each, n in zip(self.sequences, self.done, strict=True)
        ]
        tokens, mask = _padded(parts, self.like)
        logits, state = self.model.prefill(tokens, mask, self.state)
        done = [n + len(part) for n, part in zip(self.done, parts, strict=True)]
        self.done, self.state = done, state
        ready = [at for at, each in enumerate(self.sequences) if done[at] == len(each.prompt)]
        if not ready:
            return None
        result = Ready(
            [self.sequences[at] for at in ready],
            states.take_rows(logits, ready) if len(ready) < len(done) else logits,
            states.take_rows(state, ready) if len(ready) < len(done) else state,
        )
        self.keep([at for at in range(len(done)) if at not in ready])
        return result

    def keep(self, rows: list[int]) -> None:
        """Drop all prompts except some.

        Args:
            rows: Indices of the prompts to keep.
        """
        if len(rows) == len(self.sequences):
            return
        if not rows:
            self.clear()
            return
        self.state = states.take_rows(self.state, rows)
        self.sequences = [self.sequences[row] for row in rows]
        self.done = [self.done[row] for row in rows]


class RunningBatch:
    """Sequences that are generated together, one token of each at a time.

    Args:
        model: The model.
        like: Tensor on the backend and device of the model.
    """

    def __init__(self, model: Generator, like: Tensor) -> None:
        self.model = model
        self.like = like
        self.clear()

    def clear(self) -> None:
        """Remove all sequences."""
        self.rows: list[RowSampler] = []
        self.state: Any = None

    def join(self, rows: list[RowSampler], state: State) -> None:
        """Add sequences.

        Args:
            rows: Their samplers; each has generated at least one token.
            state: State after their prompts.
        """
        joined = state if not self.rows else states.join([self.state, state])
        self.state, self.rows = states.reserve(joined), [*self.rows, *rows]

    def keep(self, rows: list[int]) -> None:
        """Drop all sequences except some.

        Args:
            rows: Indices of the sequences to keep.
        """
        if len(rows) == len(self.rows):
            return
        if not rows:
            self.clear()
            return
        kept = [self.rows[row] for row in rows]
        longest = max(row.sequence.length for row in kept)
        state = states.trim(states.take_rows(self.state, rows), longest)
        self.state, self.rows = states.reserve(state), kept

    def step(self) -> Tensor:
        """Feed the last token of each sequence; return the logits of the next ones."""
        last = [row.sequence.generated[-1] for row in self.rows]
        logits, self.state = self.model.step(_integers(last, self.like), self.state)
        return logits


def _padded(parts: list[list[int]], like: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return tokens of shape (rows, longest) and their padding mask; None without padding."""
    width = max(len(part) for part in parts)
    tokens = _integers([part + [0] * (width - len(part)) for part in parts], like)
    if all(len(part) == width for part in parts):
        return tokens, None
    rows = [[at < len(part) for at in range(width)] for part in parts]
    mask = convert_to_tensor(rows, dtype="bool", device=like.device, backend=like.backend)
    return tokens, mask


def _integers(values: list[int] | list[list[int]], like: Tensor) -> Tensor:
    return convert_to_tensor(values, dtype="int64", device=like.device, backend=like.backend)
