"""Append-only files of JSON lines that several processes write."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from ember_ml._core.files import open_regular, sync_folder
from ember_ml._core.locks import held
from ember_ml.training.tuning.errors import HistoryError, HistoryWarning


class LogFile:
    """File with a JSON object in each line, which is only appended to.

    Writers hold a lock and write each record with one call, followed by fsync. A process that is
    killed while it writes leaves an incomplete last line. Readers ignore it. The next writer ends
    it with a line break and adds a record of kind "torn", so that it is neither read as a record
    nor lost. Any other line that is not a JSON object is damaged: it is skipped with a
    `HistoryWarning` that has its number.

    Args:
        path: The file; created with its folder if missing.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._offset = 0  # of the first line that is not read yet
        self._line = 0  # number of lines read
        self._suspect: tuple[int, bytes] | None = None  # a line that may be declared torn
        self._locked = False
        self._create()

    def _create(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666))
            sync_folder(self.path.parent)
        except OSError as error:
            raise HistoryError(f"{self.path} cannot be written: {error.strerror}") from None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the file within the `with` block; it may be nested."""
        if self._locked:
            yield
            return
        with held(self.path):
            self._locked = True
            try:
                yield
            finally:
                self._locked = False

    def new_records(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the records since the last call, with their line numbers.

        An incomplete last line is left for a later call.
        """
        with self._open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        lines = content.split(b"\n")
        rest = lines.pop()
        if _parse(rest) is not None:  # complete, except for its line break
            lines.append(rest)
        records = []
        for text in lines:
            self._offset += len(text) + 1
            self._line += 1
            record = _parse(text)
            self._check_suspect(record)
            if record is None:
                self._suspect = (self._line, text)
            elif record.get("kind") != "torn":
                records.append((self._line, record))
        if self._suspect is not None and not rest:  # no record that declares it torn follows
            self._warn_damaged()
        return records

    def _check_suspect(self, record: Mapping[str, Any] | None) -> None:
        """Warn about the previous line if it is damaged, unless this record declares it torn."""
        if self._suspect is None:
            return
        if record is not None and record.get("kind") == "torn":
            self._suspect = None
        else:
            self._warn_damaged()

    def _warn_damaged(self) -> None:
        assert self._suspect is not None
        number, text = self._suspect
        self._suspect = None
        warnings.warn(
            f"{self.path}, line {number}: skipped, because it is not a JSON object: {text!r:.80}",
            HistoryWarning,
            stacklevel=2,
        )

    def first_bytes(self, count: int) -> bytes:
        """Return the beginning of the file.

        Args:
            count: Number of bytes.
        """
        with self._open("rb") as file:
            content: bytes = file.read(count)
        return content

    def append(self, *records: Mapping[str, Any]) -> None:
        """Append records with one write, and wait until they are on the disk.

        Args:
            *records: JSON objects.
        """
        content = b"".join(_line(record) for record in records)
        with self.locked(), self._open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            content = self._completion(file, size) + content
            try:
                _write(file, content)
                os.fsync(file.fileno())
            except BaseException:
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), size)
                raise

    def _completion(self, file: BinaryIO, size: int) -> bytes:
        """Return the bytes that end the incomplete line of a killed writer; usually none."""
        rest = _last_line(file, size)
        if not rest:
            return b""
        if _parse(rest) is not None:  # only the line break is missing
            return b"\n"
        warnings.warn(
            f"{self.path}: the last line is incomplete, because its writer was stopped; it stays "
            f"in the file and is not counted: {rest!r:.80}",
            HistoryWarning,
            stacklevel=4,
        )
        return b"\n" + _line({"kind": "torn", "bytes": len(rest)})

    def _open(self, mode: str) -> Any:
        try:
            return open_regular(self.path, mode)
        except OSError as error:
            raise HistoryError(f"{self.path} cannot be opened: {error.strerror}") from None


def _write(file: BinaryIO, content: bytes) -> None:
    """Write all bytes; usually one call does."""
    view = memoryview(content)
    while view:
        view = view[file.write(view) :]


def _last_line(file: BinaryIO, size: int) -> bytes:
    """Return what follows the last line break."""
    rest, at = b"", size
    while at and b"\n" not in rest:
        start = max(0, at - 4096)
        file.seek(start)
        rest, at = file.read(at - start) + rest, start
    file.seek(size)
    return rest.rpartition(b"\n")[2]


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _parse(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line; None if there is none.

    No beginning of an object is itself an object, so a line that is cut off is never read as one.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
