"""Tokenizer or character vocabulary in the folder of a training run."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import write_atomically
from ember_ml.data.text import Tokenizer, TokenizerError, Vocabulary

TextEncoder: TypeAlias = Tokenizer | Vocabulary
FILES = ("tokenizer.json", "vocab.json")
"""Names of the files in the folder of a training run."""


def read_encoder(folder: Path) -> TextEncoder | None:
    """Return the tokenizer or vocabulary in a folder; None if it has none.

    Args:
        folder: Folder of a training run or a checkpoint.
    """
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.load(folder / "tokenizer.json")
    path = folder / "vocab.json"
    return Vocabulary.read(path) if path.is_file() else None


def write_encoder(folder: Path, encoder: TextEncoder, *, replace: bool) -> None:
    """Write a tokenizer or vocabulary to the folder of a training run.

    Args:
        folder: The folder.
        encoder: Tokenizer or vocabulary.
        replace: Whether another `tokenizer.json` may be replaced. By default it is an error.
    """
    if isinstance(encoder, Vocabulary):
        write_atomically(folder / "vocab.json", encoder.to_json().encode())
        return
    path = folder / "tokenizer.json"
    if not replace and path.exists() and path.read_bytes() != encoder.to_json().encode():
        raise ArgumentError(
            f"out: {path} is another tokenizer; replace it (--overwrite), or choose another folder "
            "(out=...)"
        )
    write_atomically(path, encoder.to_json().encode())


def encode(encoder: TextEncoder, text: str, where: str) -> list[int]:
    """Return the token ids of a text.

    Args:
        encoder: Tokenizer or vocabulary.
        text: Text to encode.
        where: Name of the text in errors.
    """
    if isinstance(encoder, Vocabulary):
        return encoder.encode(text, where)
    try:
        return encoder.encode(text, add_special_tokens=False)
    except TokenizerError as error:
        raise TokenizerError(f"{where}: {error}") from None


def default_prompt(encoder: TextEncoder) -> list[int]:
    """Return the prompt of a text without a beginning: BOS, a line break, or the first token.

    Args:
        encoder: Tokenizer or vocabulary.
    """
    if isinstance(encoder, Vocabulary):
        return encoder.encode("\n" if "\n" in encoder.tokens else encoder.tokens[0])
    return encoder.encode("\n", add_special_tokens=False) or [encoder.bos_id or 0]
