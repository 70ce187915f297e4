"""Tokens of a corpus in a memory-mapped file, for language models."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ember_ml._core import locks
from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import sync_folder
from ember_ml.data.conversion import Indices, Pytree
from ember_ml.data.errors import DataFileError
from ember_ml.data.files import PathLike
from ember_ml.data.text import token_files
from ember_ml.data.text.sources import Texts, batches, texts_of
from ember_ml.data.text.token_files import TokenFile, TokenWriter
from ember_ml.data.text.tokenizer import Tokenizer
from ember_ml.data.text.windows import TokenWindows


class PackedTokens(TokenWindows):
    """Windows of the tokens of a corpus, which are in a memory-mapped file.

    An example is (inputs, targets), both int64 of shape (seq_len,); the targets are the next
    tokens. A batch reads only its own windows. The file is a safetensors file with one array of
    uint16 or uint32; `PackedTokens.build` writes it.

    Args:
        path: The file.
        seq_len: Number of tokens of a window.
        tokenizer: Tokenizer that the tokens must be from. Default: not checked.

    Example:
        >>> import tempfile
        >>> from ember_ml.data.text import PackedTokens, Tokenizer
        >>> folder = tempfile.TemporaryDirectory()
        >>> tokenizer = Tokenizer.train([], "byte")
        >>> path = PackedTokens.build(["abc", "de"], tokenizer, f"{folder.name}/corpus.tokens")
        >>> inputs, targets = PackedTokens(path, seq_len=3).batch([0, 1])
        >>> inputs.tolist(), targets.tolist()
        ([[97, 98, 99], [258, 100, 101]], [[98, 99, 258], [100, 101, 258]])
        >>> folder.cleanup()
    """

    def __init__(self, path: PathLike, seq_len: int, tokenizer: Tokenizer | None = None) -> None:
        self.path = Path(path).absolute()
        self.file = TokenFile.open(self.path)
        if tokenizer is not None and tokenizer.checksum != self.file.tokenizer:
            raise ArgumentError(
                f"PackedTokens: {self.path} has the tokens of another tokenizer; build it again"
            )
        super().__init__(self.file.tokens(), seq_len, str(self.path))

    def __getitem__(self, index: int) -> Pytree:
        self.file.check_size()
        return super().__getitem__(index)

    def batch(self, indices: Indices) -> Pytree:
        """Return (inputs, targets) of the windows at the indices, each (batch, seq_len).

        Args:
            indices: Array or sequence of integers.

        Raises:
            DataFileError: If the file was truncated after it was opened.
        """
        self.file.check_size()
        return super().batch(indices)

    @property
    def vocab_size(self) -> int:
        """Number of token ids of the tokenizer."""
        return self.file.vocab_size

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the file."""
        return self.file.num_tokens

    def verify(self) -> None:
        """Read the whole file, and raise a DataFileError if its checksum is wrong."""
        self.file.verify()

    # Pickle the name of the file, not its content.
    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "seq_len": self.seq_len}

    def __setstate__(self, state: dict[str, Any]) -> None:
        PackedTokens.__init__(self, state["path"], state["seq_len"])

    @staticmethod
    def build(
        source: Texts,
        tokenizer: Tokenizer,
        path: PathLike,
        *,
        eos: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Encode a corpus and write its tokens to a file atomically; return the path.

        The source is streamed: memory does not grow with it, only with its longest text. After a
        crash, start again: the file is missing or as before, never incomplete.

        Args:
            source: Documents, such as a list or a `JSONLDataset(path, "text")`; or a file, or a
                list of `Path`s, whose lines (with their line breaks) are the documents.
            tokenizer: Tokenizer of the documents.
            path: File to write.
            eos: Whether the EOS token follows each document.
            overwrite: Whether to replace an existing file that `build` wrote. By default it raises
                an error.
        """
        target = Path(os.path.realpath(path))
        if eos and tokenizer.eos_id is None:
            raise ArgumentError(
                "PackedTokens.build: the tokenizer has no EOS token; pass eos=False, or set it: "
                "Tokenizer.load(path, special_tokens={'eos': ...})"
            )
        _check_target(target, overwrite)
        documents = texts_of("PackedTokens.build", source)
        target.parent.mkdir(parents=True, exist_ok=True)
        with _partial_file(target) as partial:
            with TokenWriter(partial, tokenizer.vocab_size, tokenizer.checksum) as writer:
                for batch in batches(documents):
                    _write(writer, batch, tokenizer, eos)
            os.replace(partial, target)
        sync_folder(target.parent)
        return target


def _check_target(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise DataFileError(f"{target} exists; pass overwrite=True to replace it")
    try:
        TokenFile.open(target)
    except DataFileError as error:
        raise DataFileError(f"{error}; it is not overwritten") from None


@contextlib.contextmanager
def _partial_file(target: Path) -> Iterator[Path]:
    """Hold a new file next to the target, which has one writer; a killed one's is used again."""
    partial = target.with_name(f".{target.name}.partial")
    with locks.locked(partial) as is_free:
        if not is_free:
            raise DataFileError(f"{target} is being written by another process")
        try:
            yield partial
        finally:
            partial.unlink(missing_ok=True)


def _write(writer: TokenWriter, texts: list[str], tokenizer: Tokenizer, eos: bool) -> None:
    end = [tokenizer.eos_id] if eos else []
    rows = tokenizer.encode_batch(texts)
    writer.write(np.array([token for row in rows for token in (*row, *end)], token_files.WIDEST))
    writer.documents += len(texts)
