"""Text as tokens, each a character."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml.data import Dataset


class VocabularyError(EmberError, ValueError):
    """A vocabulary that cannot be read, or lacks a character."""


class Vocabulary:
    """Characters and their numbers.

    Args:
        tokens: the characters, in order.

    Example:
        >>> from ember_ml.cli.text import Vocabulary
        >>> vocabulary = Vocabulary.of("hello")
        >>> vocabulary.decode(vocabulary.encode("hole"))
        'hole'
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = list(tokens)
        self._ids = {token: at for at, token in enumerate(self.tokens)}

    @classmethod
    def of(cls, text: str) -> Vocabulary:
        """The characters that are in a text."""
        return cls(sorted(set(text)))

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str, where: str = "the text") -> list[int]:
        """The number of each character; `where` names the text in an error."""
        unknown = sorted(set(text) - set(self._ids))
        if unknown:
            at = min(text.index(character) for character in unknown)
            raise VocabularyError(
                f"{where}: {text[at]!r} (at {at}) is not among the {len(self)} characters that "
                "the model knows"
            )
        return [self._ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of numbers; one beyond the vocabulary is shown as a replacement character."""
        return "".join(self.tokens[at] if at < len(self) else "\ufffd" for at in ids)

    def to_json(self) -> str:
        """As the content of vocab.json."""
        return json.dumps({"level": "char", "tokens": self.tokens}, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """From vocab.json."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            tokens = data["tokens"]
            if data["level"] != "char" or not all(isinstance(token, str) for token in tokens):
                raise ValueError("it holds no characters")
        except (ValueError, KeyError, TypeError) as error:
            raise VocabularyError(f"{path} is no vocabulary: {error}") from None
        return cls(tokens)


def read_text(path: Path) -> str:
    """The text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(
            f"{path} is no text in UTF-8: {error.reason} at {error.start}"
        ) from None


class TextWindows(Dataset):
    """Pieces of a text, side by side, and of each the tokens that follow.

    Args:
        ids: the text's tokens.
        seq_len: tokens of a piece.
        where: the text's name, for errors.

    Example:
        >>> from ember_ml.cli.text import TextWindows
        >>> inputs, targets = TextWindows([5, 6, 7, 8, 9], 2).batch([0, 1])
        >>> inputs.tolist(), targets.tolist()
        ([[5, 6], [7, 8]], [[6, 7], [8, 9]])
    """

    def __init__(self, ids: list[int], seq_len: int, where: str = "the text") -> None:
        from ember_ml.data import host_arrays

        if len(ids) <= seq_len:
            raise ArgumentError(
                f"{where}: {len(ids)} tokens are too few for an example of seq_len={seq_len} and "
                "the one that follows"
            )
        self._ids = host_arrays.array_of(ids)
        self.seq_len = seq_len

    def __len__(self) -> int:
        return int((len(self._ids) - 1) // self.seq_len)

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"TextWindows: no piece {index} of {len(self)}")
        start = index * self.seq_len
        end = start + self.seq_len
        return self._ids[start:end], self._ids[start + 1 : end + 1]
