"""Character-level text datasets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ember_ml._core.errors import ArgumentError, EmberError
from ember_ml.data import Dataset, host_arrays


class VocabularyError(EmberError, ValueError):
    """Raised for a vocabulary that cannot be read, or that lacks a character."""


class Vocabulary:
    """Mapping between characters and token ids.

    Args:
        tokens: Characters in the order of their ids.

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
        """Return the vocabulary of the characters in a text."""
        return cls(sorted(set(text)))

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str, where: str = "the text") -> list[int]:
        """Return the id of each character.

        Args:
            text: Text to encode.
            where: Name of the text in errors.
        """
        unknown = sorted(set(text) - set(self._ids))
        if unknown:
            at = min(text.index(character) for character in unknown)
            raise VocabularyError(
                f"{where}: {text[at]!r} (at {at}) is not among the {len(self)} characters of the "
                "vocabulary"
            )
        return [self._ids[character] for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids; unknown ids become the replacement character."""
        return "".join(self.tokens[at] if at < len(self) else "\ufffd" for at in ids)

    def to_json(self) -> str:
        """Return the content of `vocab.json`."""
        return json.dumps({"level": "char", "tokens": self.tokens}, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a `vocab.json` file."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            tokens = data["tokens"]
            characters = isinstance(tokens, list) and all(isinstance(each, str) for each in tokens)
            if data["level"] != "char" or not characters:
                raise ValueError("its tokens are not characters")
        except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            raise VocabularyError(f"{path} is not a vocabulary: {error}") from None
        return cls(tokens)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path} is not UTF-8 text: {error.reason} at {error.start}") from None


class TextWindows(Dataset):
    """Consecutive windows of a text; the targets are the next tokens.

    Args:
        ids: Token ids of the text.
        seq_len: Number of tokens of a window.
        where: Name of the text in errors.

    Example:
        >>> from ember_ml.cli.text import TextWindows
        >>> inputs, targets = TextWindows([5, 6, 7, 8, 9], 2).batch([0, 1])
        >>> inputs.tolist(), targets.tolist()
        ([[5, 6], [7, 8]], [[6, 7], [8, 9]])
    """

    def __init__(self, ids: list[int], seq_len: int, where: str = "the text") -> None:
        if len(ids) <= seq_len:
            raise ArgumentError(
                f"{where}: {len(ids)} tokens are too few for a window of seq_len={seq_len} and its "
                "next token"
            )
        self._ids = host_arrays.array_of(ids)
        self.seq_len = seq_len

    def __len__(self) -> int:
        return int((len(self._ids) - 1) // self.seq_len)

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"TextWindows: index {index} is out of range for {len(self)} windows")
        start = index * self.seq_len
        end = start + self.seq_len
        return self._ids[start:end], self._ids[start + 1 : end + 1]
