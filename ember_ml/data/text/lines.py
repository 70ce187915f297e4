"""Streams of the lines of text files, and of the objects in JSON Lines files."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import itertools
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import open_regular
from ember_ml.data.conversion import Pytree
from ember_ml.data.errors import DataFileError
from ember_ml.data.files import PathLike, Paths, existing_files
from ember_ml.data.stream import IterableDataset

_OPENERS = {".gz": gzip.GzipFile, ".bz2": bz2.BZ2File, ".xz": lzma.LZMAFile}
_DAMAGED = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, OSError)


class Line(NamedTuple):
    """Line of a file as bytes, with its position."""

    path: Path
    number: int
    offset: int
    content: bytes

    def error(self, problem: str) -> DataFileError:
        """Return an error that names the file and the line.

        Args:
            problem: What is wrong with the line.
        """
        return DataFileError(f"{self.path}, line {self.number}: {problem}")


class LineDataset(IterableDataset):
    r"""Stream of the lines of text files, in the order of the files.

    Files that end in .gz, .bz2 or .xz are decompressed. A line that is not valid text raises a
    `DataFileError` with the file, the line and the position of the byte. Resuming skips lines
    without decoding them.

    Args:
        paths: A file, or several.
        encoding: Encoding of the files, an extension of ASCII such as "utf-8".
        keep_newline: Whether the lines keep their line breaks.
        skip_empty: Whether to leave out lines that are empty or contain only white space.

    Example:
        >>> import pathlib, tempfile
        >>> from ember_ml.data.text import LineDataset
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "poem.txt")
        >>> _ = path.write_text("one\ntwo\nthree\n")
        >>> lines = LineDataset(path)
        >>> list(lines), list(lines.iterate_from(2))
        (['one', 'two', 'three'], ['three'])
        >>> folder.cleanup()
    """

    def __init__(
        self,
        paths: Paths,
        *,
        encoding: str = "utf-8",
        keep_newline: bool = False,
        skip_empty: bool = False,
    ) -> None:
        self.paths = existing_files(type(self).__name__, paths)
        self.encoding = _checked_encoding(type(self).__name__, encoding)
        self.keep_newline = keep_newline
        self.skip_empty = skip_empty

    def __iter__(self) -> Iterator[Pytree]:
        return self.iterate_from(0)

    def iterate_from(self, start: int) -> Iterator[Pytree]:
        """Return an iterator over the examples from a position on.

        Args:
            start: Number of examples to skip.
        """
        lines: Iterator[Line] = itertools.chain.from_iterable(map(_lines, self.paths))
        if self.skip_empty:
            lines = (line for line in lines if line.content.strip())
        return map(self._example, itertools.islice(lines, start, None))

    def _example(self, line: Line) -> Pytree:
        return self._text(line)

    def _text(self, line: Line) -> str:
        try:
            text = line.content.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise line.error(
                f"not valid {self.encoding}: {error.reason} at byte {line.offset + error.start} of "
                f"the file (0x{line.content[error.start]:02x})"
            ) from None
        if line.number == 1:
            text = text.removeprefix("\ufeff")
        if self.keep_newline or not text.endswith("\n"):
            return text
        return text[:-2] if text.endswith("\r\n") else text[:-1]


class JSONLDataset(LineDataset):
    r"""Stream of the objects in JSON Lines files: one JSON object per line.

    Empty lines are left out. A line that is not a JSON object, or lacks the field, raises a
    `DataFileError` with the file and the line.

    Args:
        paths: A file, or several; .gz, .bz2 and .xz files are decompressed.
        field: Name of the field to return, such as "text". Default: the whole object, a dict.

    Example:
        >>> import pathlib, tempfile
        >>> from ember_ml.data.text import JSONLDataset
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "data.jsonl")
        >>> _ = path.write_text('{"text": "one", "id": 1}\n{"text": "two", "id": 2}\n')
        >>> list(JSONLDataset(path, "text"))
        ['one', 'two']
        >>> folder.cleanup()
    """

    def __init__(self, paths: Paths, field: str | None = None) -> None:
        super().__init__(paths, skip_empty=True)
        self.field = field

    def _example(self, line: Line) -> Pytree:
        text = self._text(line)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise line.error(f"not valid JSON: {error}") from None
        if not isinstance(value, dict):
            raise line.error(f"expected a JSON object, not {value!r:.60}")
        if self.field is None:
            return value
        if self.field not in value:
            names = ", ".join(map(repr, value)) or "none"
            raise line.error(f"there is no field {self.field!r:.60}; the fields are {names:.200}")
        return value[self.field]


def read_text(path: PathLike) -> str:
    r"""Return the text of a UTF-8 file, with "\n" for every kind of line break.

    Args:
        path: The file; .gz, .bz2 and .xz files are decompressed.
    """
    text = "".join(LineDataset(path, keep_newline=True))
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _checked_encoding(where: str, encoding: str) -> str:
    try:
        if "\n".encode(encoding) == b"\n":
            return codecs.lookup(encoding).name
    except LookupError:
        pass
    raise ArgumentError(
        f"{where}: encoding must be an extension of ASCII, such as 'utf-8', not {encoding!r}"
    )


def _lines(path: Path) -> Iterator[Line]:
    """Yield the lines of a file as bytes."""
    number, offset = 0, 0
    try:
        with _open(path) as file:
            for number, content in enumerate(file, 1):
                yield Line(path, number, offset, content)
                offset += len(content)
    except DataFileError:
        raise
    except _DAMAGED as error:
        raise DataFileError(f"{path}, after line {number}: cannot be read: {error}") from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix in _OPENERS:
        return _OPENERS[path.suffix](path)
    return io.BufferedReader(open_regular(path), 1 << 20)
