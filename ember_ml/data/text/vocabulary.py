"""Vocabularies of characters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from ember_ml._core.errors import EmberError


class VocabularyError(EmberError, ValueError):
    """Raised for a vocabulary that cannot be read, or that lacks a character."""


class Vocabulary:
    """Mapping between characters and token ids, without optional packages.

    `Tokenizer.from_vocabulary` has the same ids.

    Args:
        tokens: Characters in the order of their ids.

    Example:
        >>> from ember_ml.data.text import Vocabulary
        >>> vocabulary = Vocabulary.of("hello")
        >>> vocabulary.decode(vocabulary.encode("hole"))
        'hole'
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = list(tokens)
        self._ids = {token: at for at, token in enumerate(self.tokens)}

    @classmethod
    def of(cls, text: str) -> Vocabulary:
        """Return the vocabulary of the characters in a text.

        Args:
            text: The text.
        """
        return cls(sorted(set(text)))

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
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
        """Return the text of token ids; unknown ids become the replacement character.

        Args:
            ids: Token ids.
        """
        known = range(len(self.tokens))
        return "".join(self.tokens[at] if at in known else "\ufffd" for at in ids)

    def to_json(self) -> str:
        """Return the content of `vocab.json`."""
        return json.dumps({"level": "char", "tokens": self.tokens}, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a `vocab.json` file.

        Args:
            path: The file.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            tokens = data["tokens"]
            characters = isinstance(tokens, list) and all(isinstance(each, str) for each in tokens)
            if data["level"] != "char" or not characters:
                raise ValueError("its tokens are not characters")
        except (ValueError, KeyError, TypeError, RecursionError, OSError) as error:
            raise VocabularyError(f"{path} is not a vocabulary: {error}") from None
        return cls(tokens)
