"""Files of tokens: a safetensors file with one array, written in pieces and memory-mapped."""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from ember_ml._core.errors import ArgumentError
from ember_ml._core.safetensors_files import SafetensorsError, SafetensorsFile
from ember_ml.data.errors import DataFileError

WIDEST = np.uint32
"""Type that holds every token id."""
_FORMAT = "ember_ml.tokens.1"
_HEADER = 1024
"""Size of the header in bytes; its values are known only at the end."""
_CODES = {"uint16": "U16", "uint32": "U32"}
_PIECE = 1 << 22


@dataclasses.dataclass(frozen=True)
class TokenFile:
    """Description of a file of tokens.

    Args:
        path: The file.
        dtype: "uint16" or "uint32".
        start: Position of the first token in the file.
        num_tokens: Number of tokens.
        vocab_size: Number of token ids of the tokenizer.
        documents: Number of documents.
        crc32: Checksum of the tokens.
        tokenizer: Checksum of the tokenizer.
        inode: Device and inode number of the file.
    """

    path: Path
    dtype: str
    start: int
    num_tokens: int
    vocab_size: int
    documents: int
    crc32: int
    tokenizer: str
    inode: tuple[int, int]

    @classmethod
    def open(cls, path: Path) -> TokenFile:
        """Return the description in the header of a file, after comparing it with the size.

        Args:
            path: The file.

        Raises:
            DataFileError: If the file is missing, damaged or of another kind.
        """
        try:
            with SafetensorsFile(path) as file:
                about = file.metadata
                if about.get("format") != _FORMAT:
                    raise ValueError(f"its format is {about.get('format')!r:.60}")
                info = file.tensors["tokens"]
                if info.dtype not in _CODES or len(info.shape) != 1:
                    raise ValueError(f"the tokens are {info.dtype} of shape {info.shape}")
                sizes = int(about["vocab_size"]), int(about["documents"])
                checksums = int(about["crc32"], 16), about["tokenizer"]
                about_file = os.stat(path)
                inode = about_file.st_dev, about_file.st_ino
                return cls(path, info.dtype, info.start, info.shape[0], *sizes, *checksums, inode)
        except FileNotFoundError:
            raise DataFileError(f"PackedTokens: there is no file {path}") from None
        except (OSError, SafetensorsError, ValueError, KeyError) as error:
            raise DataFileError(f"{path} is not a file of PackedTokens: {error}") from None

    def tokens(self) -> np.ndarray:
        """Return the memory-mapped tokens."""
        if not self.num_tokens:
            return np.empty(0, self.dtype)
        kind = np.dtype(self.dtype).newbyteorder("<")
        return np.memmap(self.path, kind, "r", self.start, (self.num_tokens,)).view(np.ndarray)

    def check_size(self) -> None:
        """Raise a DataFileError if the file has become too short for its tokens.

        Reading memory that is no longer in the file returns zeros or ends the process. A file that
        was removed or replaced stays readable.
        """
        try:
            about = os.stat(self.path)
        except OSError:
            return
        size = self.start + self.num_tokens * np.dtype(self.dtype).itemsize
        if about.st_size < size and (about.st_dev, about.st_ino) == self.inode:
            raise DataFileError(
                f"{self.path} was truncated after it was opened: it has {about.st_size} bytes, but "
                f"had {size}; build it again"
            )

    def verify(self) -> None:
        """Raise a DataFileError if the checksum of the tokens is wrong."""
        crc32 = 0
        with open(self.path, "rb") as file:
            file.seek(self.start)
            while piece := file.read(_PIECE):
                crc32 = zlib.crc32(piece, crc32)
        if crc32 != self.crc32:
            raise DataFileError(f"{self.path} is damaged: its checksum is wrong; build it again")


class TokenWriter:
    """Writer of a file of tokens, piece by piece.

    Args:
        path: The file.
        vocab_size: Number of token ids; determines the dtype.
        tokenizer: Checksum of the tokenizer.
    """

    def __init__(self, path: Path, vocab_size: int, tokenizer: str) -> None:
        self.vocab_size = vocab_size
        self.tokenizer = tokenizer
        self.dtype = "uint16" if vocab_size <= 1 << 16 else "uint32"
        self.documents = 0
        self._count = 0
        self._crc32 = 0
        self._file = path.open("wb")

    def __enter__(self) -> Self:
        self._file.write(bytes(_HEADER))
        return self

    def write(self, tokens: np.ndarray) -> None:
        """Append tokens.

        Args:
            tokens: Token ids.
        """
        if tokens.size and int(tokens.max()) >= self.vocab_size:
            raise ArgumentError(
                f"PackedTokens.build: token id {tokens.max()} is not below {self.vocab_size}"
            )
        content = tokens.astype(np.dtype(self.dtype).newbyteorder("<")).tobytes()
        self._file.write(content)
        self._crc32 = zlib.crc32(content, self._crc32)
        self._count += tokens.size

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._file as file:
            if error is None:
                file.seek(0)
                file.write(self._header())
                file.flush()
                os.fsync(file.fileno())

    def _header(self) -> bytes:
        size = self._count * np.dtype(self.dtype).itemsize
        about = {
            "format": _FORMAT,
            "vocab_size": str(self.vocab_size),
            "documents": str(self.documents),
            "crc32": f"{self._crc32:08x}",
            "tokenizer": self.tokenizer,
        }
        array = {"dtype": _CODES[self.dtype], "shape": [self._count], "data_offsets": [0, size]}
        text = json.dumps({"__metadata__": about, "tokens": array}).encode()
        length = _HEADER - 8
        return length.to_bytes(8, "little") + text.ljust(length)
