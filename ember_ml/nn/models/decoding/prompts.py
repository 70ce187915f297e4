"""Prompts of equal and of unequal length."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import NamedTuple

from ember_ml._core.convert import convert_to_tensor
from ember_ml._core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ember_ml._core.tensor import Tensor, TensorLike


class Prompts(NamedTuple):
    """Checked prompts of a batch."""

    tokens: Tensor
    """Integers of shape (batch, longest prompt). The end of a shorter row repeats its last token.
    """
    lengths: list[int]
    is_ragged: bool
    """Whether the prompts were a list of unequal lengths, or had a mask."""
    is_single: bool
    """Whether there was one prompt without a batch axis."""

    @property
    def rows(self) -> list[list[int]]:
        """The prompts without padding."""
        rows = self.tokens.tolist()
        return [row[:length] for row, length in zip(rows, self.lengths, strict=True)]


def read_prompts(
    name: str, prompt: TensorLike, mask: TensorLike | None, like: Tensor, vocab_size: int
) -> Prompts:
    """Return the prompts of a call.

    Args:
        name: Class of the model, for errors.
        prompt: Integers of shape (batch, time) or (time,), or a list of lists or arrays
            of any lengths.
        mask: Padding mask of shape (batch, time), False at the right of shorter prompts.
        like: Tensor on the backend and device of the model.
        vocab_size: Number of tokens in the vocabulary.
    """
    if mask is None and _is_ragged(prompt):
        rows = [convert_to_tensor(row, backend=like.backend) for row in prompt]  # type: ignore[union-attr]
        for at, row in enumerate(rows):
            if not row.size:
                raise ShapeError(f"{name}.generate: prompt {at} of the batch has no tokens")
            _check(name, row, vocab_size, f"prompt {at} of the batch")
        return _padded([row.tolist() for row in rows], like)
    tokens = convert_to_tensor(prompt, backend=like.backend)
    if tokens.ndim not in (1, 2) or not tokens.size:
        raise ShapeError(
            f"{name}.generate: a prompt must have shape (batch, time) or (time,), and at least one "
            f"token; got {tokens.shape}"
        )
    _check(name, tokens, vocab_size, "the prompt")
    if mask is not None:
        lengths = _lengths(name, tokens, convert_to_tensor(mask, backend=like.backend))
        rows = tokens.tolist()
        return _padded([row[:end] for row, end in zip(rows, lengths, strict=True)], like)
    single = tokens.ndim == 1
    tokens = tokens[None] if single else tokens
    return Prompts(tokens, [tokens.shape[1]] * tokens.shape[0], False, single)


def _is_ragged(prompt: object) -> bool:
    """Return whether a prompt is a list of sequences or arrays of unequal length."""
    if not isinstance(prompt, (list, tuple)):
        return False
    if not all(isinstance(row, Sized) and not isinstance(row, str) for row in prompt):
        return False
    if not all(getattr(row, "ndim", 1) == 1 for row in prompt):
        return False
    return len({len(row) for row in prompt}) > 1


def _padded(rows: Sequence[list[int]], like: Tensor) -> Prompts:
    longest = max(len(row) for row in rows)
    table = [row + row[-1:] * (longest - len(row)) for row in rows]
    tokens = convert_to_tensor(table, dtype="int64", device=like.device, backend=like.backend)
    return Prompts(tokens, [len(row) for row in rows], True, False)


def _check(name: str, tokens: Tensor, vocab_size: int, what: str) -> None:
    if not tokens.dtype.is_integer:
        raise ArgumentTypeError(f"{name}.generate: a prompt must have integers, not {tokens.dtype}")
    values = tokens.reshape(-1).tolist()
    low, high = min(values), max(values)
    if low < 0 or high >= vocab_size:
        raise ArgumentError(
            f"{name}.generate: {what} has tokens from {low} to {high}; the vocabulary has those "
            f"from 0 to {vocab_size - 1}"
        )


def _lengths(name: str, tokens: Tensor, mask: Tensor) -> list[int]:
    """Return the number of tokens of each row."""
    if tokens.ndim != 2 or mask.shape != tokens.shape:
        raise ShapeError(
            f"{name}.generate: prompt and mask must have the same shape (batch, time), got "
            f"{tokens.shape} and {mask.shape}"
        )
    lengths = []
    for at, row in enumerate(mask.astype("bool").tolist()):
        length = sum(row)
        if not length or not all(row[:length]):
            raise ArgumentError(
                f"{name}.generate: row {at} of the mask must be True for at least one token, and "
                "False at the right of them only"
            )
        lengths.append(length)
    return lengths
