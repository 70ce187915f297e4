"""Checksums of the files that a save writes: `checksums.json` in the folder."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

NAME = "checksums.json"
FORMAT = 1

Buffer = bytes | bytearray | memoryview


class Entry(NamedTuple):
    """Size in bytes and CRC-32 of a file."""

    size: int
    crc32: int


class Manifest(NamedTuple):
    """Content of `checksums.json`.

    Attributes:
        kind: Kind of the folder, such as "checkpoint".
        files: File name -> size and checksum.
        logs: Names of append-only files, which have no checksum here.
    """

    kind: str
    files: dict[str, Entry]
    logs: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """Names of all files that the save wrote, including `checksums.json`."""
        return frozenset((*self.files, *self.logs, NAME))

    def to_json(self) -> bytes:
        """Return the content of the file, including its own checksum."""
        data = {
            "format": FORMAT,
            "kind": self.kind,
            "files": {
                name: [entry.size, f"{entry.crc32:08x}"] for name, entry in self.files.items()
            },
            "logs": list(self.logs),
        }
        return (json.dumps({**data, "crc32": _digest(data)}, indent=2) + "\n").encode()


def manifest(kind: str, files: Mapping[str, Buffer], logs: Iterable[str] = ()) -> Manifest:
    """Return the sizes and checksums of files.

    Args:
        kind: Kind of the folder.
        files: File name -> content.
        logs: Names of append-only files.
    """
    return Manifest(kind, {name: entry(content) for name, content in files.items()}, tuple(logs))


def entry(content: Buffer) -> Entry:
    """Return the size and the checksum of a file's content."""
    return Entry(memoryview(content).nbytes, zlib.crc32(content))


def parse(content: bytes) -> Manifest:
    """Return the manifest in the content of `checksums.json`.

    Raises:
        ValueError: If the content is damaged, or of a later format.
    """
    try:
        data = json.loads(content)
        digest = data.pop("crc32")
        if data["format"] != FORMAT:
            raise ValueError(f"it has format {data['format']!r}, expected {FORMAT}")
        if digest != _digest(data):
            raise ValueError("its own checksum is wrong")
        names = (*data["files"], *data["logs"])
        if not all(map(is_file_name, names)):
            raise ValueError("it lists a file outside the folder")
        files = {name: Entry(size, int(crc, 16)) for name, (size, crc) in data["files"].items()}
        return Manifest(data["kind"], files, tuple(data["logs"]))
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"its structure is wrong ({error!r})") from None


def is_file_name(name: object) -> bool:
    """Return whether a value is the name of a file in the folder itself.

    Args:
        name: Value to check.
    """
    return isinstance(name, str) and name not in ("", ".", "..") and not set(name) & set("/\\\0")


def _digest(data: Mapping[str, object]) -> str:
    return f"{zlib.crc32(json.dumps(data, sort_keys=True).encode()):08x}"
