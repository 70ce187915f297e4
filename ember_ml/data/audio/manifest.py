"""Manifests: lists of audio files with labels, as CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ember_ml._core.files import read_regular
from ember_ml.data.errors import DataFileError


class Recording(NamedTuple):
    """Row of a manifest."""

    path: Path
    label: str | None


def read_manifest(manifest: Path, root: Path) -> list[Recording]:
    """Return the recordings of a manifest; each path must be a file inside of the root.

    Args:
        manifest: CSV file with a header, or JSON lines (.jsonl, .json), with "path" and, in all
            rows or in none, "label".
        root: Folder that relative paths start from.
    """
    inside = root.resolve()
    recordings = []
    for line, row in _rows(manifest):
        recordings.append(_recording(manifest, line, row, root, inside))
    if not recordings:
        raise DataFileError(f"{manifest}: the manifest has no rows")
    labelled = [recording.label is not None for recording in recordings]
    if any(labelled) and not all(labelled):
        raise DataFileError(
            f"{manifest}: either all rows or none must have a label; "
            f"{recordings[labelled.index(False)].path} has none"
        )
    return recordings


def _recording(
    manifest: Path, line: int, row: dict[str, object], root: Path, inside: Path
) -> Recording:
    where = f"{manifest}:{line}"
    name = row.get("path")
    if not isinstance(name, str) or not name or "\0" in name:
        raise DataFileError(f"{where}: 'path' must name an audio file, not {name!r:.60}")
    path = (root / name).resolve()  # follows links, so that none leads out of the root
    if not path.is_relative_to(inside):
        raise DataFileError(f"{where}: the path {name!r} is outside of the folder {root}")
    if not path.is_file():
        raise DataFileError(f"{where}: there is no file {path}")
    label = row.get("label")
    if isinstance(label, (bool, float, list, dict)):
        raise DataFileError(f"{where}: 'label' must be a string or an integer, not {label!r:.60}")
    return Recording(path, None if label is None or label == "" else str(label))


def _rows(manifest: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line number, row)."""
    suffix = manifest.suffix.lower()
    if suffix not in (".csv", ".tsv", ".jsonl", ".json"):
        raise DataFileError(f"{manifest}: a manifest must end in .csv, .tsv or .jsonl")
    try:
        text = read_regular(manifest).decode("utf-8-sig")
    except OSError as error:
        raise DataFileError(f"{manifest}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DataFileError(f"{manifest}: not UTF-8 at byte {error.start}") from None
    if suffix in (".csv", ".tsv"):
        return _csv_rows(manifest, text, "\t" if suffix == ".tsv" else ",")
    return _json_rows(manifest, text)


def _csv_rows(manifest: Path, text: str, delimiter: str) -> Iterator[tuple[int, dict[str, object]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        if "path" not in (reader.fieldnames or ()):
            raise DataFileError(
                f"{manifest}: the first line must name the columns, with 'path' among them; it "
                f"names {', '.join(reader.fieldnames or ()) or 'none'}"
            )
        for row in reader:
            yield reader.line_num, dict(row)
    except csv.Error as error:
        raise DataFileError(f"{manifest}:{reader.line_num}: not valid CSV ({error})") from None


def _json_rows(manifest: Path, text: str) -> Iterator[tuple[int, dict[str, object]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataFileError(f"{manifest}:{number}: not valid JSON ({error})") from None
        if not isinstance(row, dict):
            raise DataFileError(f"{manifest}:{number}: expected an object, not {line:.60}")
        yield number, row
