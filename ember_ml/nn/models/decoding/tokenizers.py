"""Tokenizers of models."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

_READER = "ember_ml.data.text.files"
"""Module that reads the files of tokenizers. It is above nn, so it is imported by name."""


class TextTokenizer(Protocol):
    """What generation uses of a tokenizer, such as those of `ember_ml.data.text`."""

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""

    @property
    def eos_id(self) -> int | None:
        """Token that ends a text, if there is one."""

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text."""

    def decode(self, ids: list[int]) -> str:
        """Return the text of token ids."""

    def decode_stream(self, ids: Iterable[int], *, after: Sequence[int] = ()) -> Iterator[str]:
        """Yield the text of token ids piece by piece, complete characters only."""

    def to_files(self) -> dict[str, bytes]:
        """Return the files of the tokenizer, for checkpoints."""


def find_tokenizer(folder: Path) -> TextTokenizer | None:
    """Return the tokenizer that transformers saved in a folder; None if there is none.

    It is also None if the package `tokenizers` is not installed.

    Args:
        folder: Folder of a model.
    """
    if not (folder / "tokenizer.json").is_file() or importlib.util.find_spec("tokenizers") is None:
        return None
    reader = importlib.import_module(_READER)
    return cast("TextTokenizer", reader.Tokenizer.load(folder / "tokenizer.json"))


def read_tokenizer(files: Mapping[str, bytes]) -> TextTokenizer:
    """Return the tokenizer of the files that `to_files` returned.

    Args:
        files: File name -> content.
    """
    reader = importlib.import_module(_READER)
    return cast("TextTokenizer", reader.read_files(files))
