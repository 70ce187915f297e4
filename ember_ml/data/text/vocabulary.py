"""Vocabularies of characters."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ember_ml._core.errors import EmberError

FILE = "vocab.json"
"""Name of the file of a vocabulary in a folder."""


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

    eos_id: int | None = None
    """Token that ends a text: there is none."""

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

    def decode_stream(self, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
        """Yield the text of token ids character by character, for generation.

        Args:
            ids: Token ids, such as those that a model samples.
            after: Token ids before them, which do not matter.
        """
        return (self.decode([token]) for token in ids)

    def to_json(self) -> str:
        """Return the content of `vocab.json`."""
        return json.dumps({"level": "char", "tokens": self.tokens}, ensure_ascii=False) + "\n"

    def to_files(self) -> dict[str, bytes]:
        """Return the file of the vocabulary, such as for `Module.extra_files`."""
        return {FILE: self.to_json().encode()}

    @classmethod
    def from_json(cls, content: str | bytes, where: object = FILE) -> Vocabulary:
        """Return the vocabulary in the content of a `vocab.json`.

        Args:
            content: The content.
            where: Name of the file in errors.
        """
        try:
            data = json.loads(content)
            tokens = data["tokens"]
            characters = isinstance(tokens, list) and all(isinstance(each, str) for each in tokens)
            if data["level"] != "char" or not characters:
                raise ValueError("its tokens are not characters")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise VocabularyError(f"{where} is not a vocabulary: {error}") from None
        return cls(tokens)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """Read a `vocab.json` file.

        Args:
            path: The file.
        """
        try:
            content = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise VocabularyError(f"{path} is not a vocabulary: {error}") from None
        return cls.from_json(content, path)
