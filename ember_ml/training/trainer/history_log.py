"""Append-only log of the records of a training run, as JSON lines."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ember_ml._core.files import open_regular
from ember_ml._core.locks import held

NAME = "history.jsonl"
_CHUNK = 1 << 20
"""Bytes that are read at a time."""
_MAX_IN_MEMORY = 1 << 20
"""Size in bytes above which the buffer of new records is a temporary file."""

_BY_EFFECTIVE_ID = os.access in os.supports_effective_ids

Record = dict[str, float]


class Position(NamedTuple):
    """End of the part of a log that belongs to a checkpoint: its size, checksum and records."""

    size: int = 0
    crc32: int = 0
    steps: int = 0
    epochs: int = 0


def line(kind: str, record: Mapping[str, float]) -> bytes:
    """Return the line of a record of a "step" or an "epoch"."""
    text = json.dumps({"kind": kind, "record": record}, separators=(",", ":"), default=_number)
    return text.encode() + b"\n"


def plain(record: Mapping[str, float]) -> Record:
    """Return a record with Python numbers, as a line has them."""
    return parse(line("step", record))[1]


def _number(value: Any) -> float | str:
    """Return a value that a callback added to a record, as a float or else as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return repr(value)


def parse(text: bytes) -> tuple[str, Record]:
    """Return the kind and the record of a line.

    Raises:
        ValueError: If it is not a line of a log.
    """
    data = json.loads(text)
    if not isinstance(data, dict) or data.get("kind") not in ("step", "epoch"):
        raise ValueError("it is not the record of a step or an epoch")
    if not isinstance(data.get("record"), dict):
        raise ValueError("a record must be a JSON object")
    return data["kind"], data["record"]


class HistoryLog:
    """All serialized records of a history: those in a saved log, and those since in a buffer.

    A checkpoint stores the position of its last record. Later records are appended to the same
    file, so the cost of saving depends only on the number of new records.
    """

    def __init__(self) -> None:
        self.position = Position()
        self._saved: BinaryIO | None = None  # the first _saved_size bytes belong to this log
        self._saved_size = 0
        self._saved_path: Path | None = None
        self._buffer: BinaryIO | None = None  # records since then
        self._sizes: dict[tuple[int, int], int] = {}  # of files that contain this log only

    @property
    def path(self) -> Path | None:
        """File of the last save; None if nothing is saved."""
        return self._saved_path

    def is_truncated(self) -> bool:
        """Return whether records were removed from the file of the last save."""
        return self._saved is not None and os.fstat(self._saved.fileno()).st_size < self._saved_size

    def append(self, kind: str, record: Mapping[str, float]) -> None:
        """Add a record.

        Args:
            kind: "step" or "epoch".
            record: The record, which must not change afterwards.
        """
        text = line(kind, record)
        if self._buffer is None:
            buffer = tempfile.SpooledTemporaryFile(_MAX_IN_MEMORY)  # noqa: SIM115
            self._buffer = self._close_with_self(buffer)  # type: ignore[arg-type]
        self._buffer.seek(0, os.SEEK_END)
        self._buffer.write(text)
        size, crc32, steps, epochs = self.position
        self.position = Position(
            size + len(text),
            zlib.crc32(text, crc32),
            steps + (kind == "step"),
            epochs + (kind == "epoch"),
        )

    def records(self, kind: str) -> Iterator[Record]:
        """Iterate over all records of a kind, in order."""
        for text in self._lines(self._chunks(0, self.position.size)):
            this, record = parse(text)
            if this == kind:
                yield record

    def write(self, log: Path, staged: Path) -> None:
        """Append the new records to the log of a folder, or write a new log if it is not ours.

        Args:
            log: The folder's log, which may be missing.
            staged: Path of the new log.
        """
        if self._append_to(log):
            path = log
        else:
            if not self._link_to(staged):
                self._copy_to(staged)
            path = staged
        self._remember(path, log)

    def _append_to(self, log: Path) -> bool:
        """Append to a log unless another program changed it; return whether it was possible."""
        try:
            with held(log), io.BufferedRandom(open_regular(log, "r+b")) as file:
                size = self._own_size(file)
                if size is None:
                    return False
                try:
                    file.seek(size)
                    for chunk in self._chunks(size, self.position.size):
                        file.write(chunk)
                    file.flush()
                    os.fsync(file.fileno())
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.ftruncate(file.fileno(), size)
                    raise
        except (FileNotFoundError, PermissionError):  # a file that is read-only is replaced
            return False
        return True

    def _own_size(self, file: BinaryIO) -> int | None:
        """Return the size of a file if it contains the beginning of this log and nothing else."""
        status = os.fstat(file.fileno())
        size = self._sizes.get((status.st_dev, status.st_ino))
        return size if size == status.st_size else None

    def _link_to(self, staged: Path) -> bool:
        """Share the file of the last save if it has all records; return whether that worked."""
        if self._saved is None or self._saved_path is None:
            return False
        if not self._own_size(self._saved) == self._saved_size == self.position.size:
            return False
        try:
            if not os.path.samestat(os.stat(self._saved_path), os.fstat(self._saved.fileno())):
                return False
            if not os.access(self._saved_path, os.R_OK | os.W_OK, effective_ids=_BY_EFFECTIVE_ID):
                return False  # later records could not be appended
            os.link(self._saved_path, staged)
        except OSError:  # it is gone, on another disk, or the disk has no links
            return False
        return True

    def _copy_to(self, staged: Path) -> None:
        with open(staged, "wb") as file:
            for chunk in self._chunks(0, self.position.size):
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())

    def _remember(self, path: Path, final: Path) -> None:
        """Read earlier records from a file from now on."""
        saved = self._close_with_self(io.BufferedReader(open_regular(path)))
        for earlier in (self._saved, self._buffer):
            if earlier is not None:
                earlier.close()
        self._saved, self._buffer = saved, None
        self._saved_size, self._saved_path = self.position.size, final
        status = os.fstat(saved.fileno())
        if status.st_size == self._saved_size:
            self._sizes[status.st_dev, status.st_ino] = status.st_size

    def _chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """Iterate over the bytes from `start` to `stop`."""
        for file, offset, end in (
            (self._saved, 0, self._saved_size),
            (self._buffer, self._saved_size, self.position.size),
        ):
            at = max(start, offset)
            while file is not None and at < min(stop, end):
                file.seek(at - offset)
                chunk = file.read(min(_CHUNK, min(stop, end) - at))
                if not chunk:
                    raise OSError(f"{self._saved_path} has lost records of this run")
                yield chunk
                at += len(chunk)

    @staticmethod
    def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines

    def _close_with_self(self, file: BinaryIO) -> BinaryIO:
        weakref.finalize(self, file.close)
        return file


def read(path: Path, position: Position) -> HistoryLog:
    """Return the log in a file up to a position; what follows belongs to later checkpoints.

    Args:
        path: The file.
        position: The position that the checkpoint stores.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the content is not what was saved.
    """
    log = HistoryLog()
    log.position = position
    log._remember(path, path)
    crc32, size, counts = 0, 0, {"step": 0, "epoch": 0}

    def checked() -> Iterator[bytes]:
        nonlocal crc32, size
        for chunk in log._chunks(0, position.size):
            crc32, size = zlib.crc32(chunk, crc32), size + len(chunk)
            yield chunk

    try:
        for text in log._lines(checked()):
            counts[parse(text)[0]] += 1
    except OSError:
        pass  # the file is too short, so the sizes below differ
    if Position(size, crc32, counts["step"], counts["epoch"]) != position:
        raise ValueError(f"its first {position.size} bytes are not the records that were saved")
    return log
