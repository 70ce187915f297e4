"""Sources of texts: files, lists and streams."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.data.files import PathLike
from ember_ml.data.text.calls import check_text
from ember_ml.data.text.lines import LineDataset

Texts: TypeAlias = PathLike | Iterable[str] | Iterable[os.PathLike[str]]
"""Texts; or a file, or several."""
_CHARACTERS = 1 << 20


def texts_of(where: str, source: Texts) -> Iterable[str]:
    """Return the texts of a source; those of files are their lines with the line breaks.

    Args:
        where: Name of the function in errors.
        source: A file (str or Path), or an iterable of texts or of Paths.
    """
    if isinstance(source, (str, os.PathLike)):
        return LineDataset(source, keep_newline=True)
    if not isinstance(source, Iterable):
        raise ArgumentTypeError(
            f"{where}: the source must be texts, or a file, not {type(source).__name__}"
        )
    iterator: Iterator[Any] = iter(source)
    first = next(iterator, None)
    if isinstance(first, os.PathLike):
        return LineDataset([first, *iterator], keep_newline=True)
    return () if first is None else itertools.chain([first], iterator)


def batches(texts: Iterable[object], *, allow_empty: bool = False) -> Iterator[list[str]]:
    """Yield lists of texts, each with about a million characters.

    Args:
        texts: The texts, which are checked.
        allow_empty: Whether there may be no text at all.
    """
    batch: list[str] = []
    size = 0
    at = -1
    for at, text in enumerate(texts):
        batch.append(check_text(text, at))
        size += len(batch[-1]) + 1
        if size >= _CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
    if at < 0 and not allow_empty:
        raise ArgumentError("Tokenizer: the source has no text")
