"""Files with labels: those of class folders, or of a manifest as CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from ember_ml._core.files import read_regular
from ember_ml.data.class_folders import LabeledFile, scan_classes
from ember_ml.data.errors import DataFileError
from ember_ml.data.files import PathLike


def labeled_files(
    where: str, root: Path, manifest: PathLike | None, suffixes: tuple[str, ...], kind: str
) -> list[LabeledFile]:
    """Return the files of a dataset: those in the class folders of a root, or of a manifest.

    Args:
        where: Name of the class in errors.
        root: Folder of the dataset.
        manifest: CSV or JSON lines file, as in `read_manifest`. None: the folders are the classes.
        suffixes: Suffixes of the files in class folders, in lower case.
        kind: Kind of the files in errors, such as "audio".
    """
    if not root.is_dir():
        raise DataFileError(f"{where}: there is no folder {root}")
    if manifest is None:
        return scan_classes(where, root, suffixes, kind)
    return read_manifest(Path(manifest).absolute(), root, kind)


def read_manifest(manifest: Path, root: Path, kind: str) -> list[LabeledFile]:
    """Return the files of a manifest; each path must be a file inside the root.

    Args:
        manifest: CSV file with a header, or JSON lines (.jsonl, .json), with "path" and, in all
            rows or in none, "label".
        root: Folder that relative paths start from.
        kind: Kind of the files in errors, such as "audio".
    """
    resolved = root.resolve()
    files = [
        _file(f"{manifest}:{line}", row, root, resolved, kind) for line, row in _rows(manifest)
    ]
    if not files:
        raise DataFileError(f"{manifest}: the manifest has no rows")
    labeled = [file.label is not None for file in files]
    if any(labeled) and not all(labeled):
        raise DataFileError(
            f"{manifest}: either all rows or none must have a label; "
            f"{files[labeled.index(False)].path} has none"
        )
    return files


def _file(where: str, row: dict[str, object], root: Path, resolved: Path, kind: str) -> LabeledFile:
    name = row.get("path")
    if not isinstance(name, str) or not name or "\0" in name:
        raise DataFileError(f"{where}: 'path' must name the {kind} file, not {name!r:.60}")
    try:
        path = (root / name).resolve()  # follows links, so that none leads out of the root
    except (OSError, RuntimeError):
        raise DataFileError(f"{where}: the path {name!r} is a loop of symbolic links") from None
    if not path.is_relative_to(resolved):
        raise DataFileError(f"{where}: the path {name!r} is outside the folder {root}")
    if not path.is_file():
        raise DataFileError(f"{where}: there is no file {path}")
    label = row.get("label")
    if isinstance(label, (bool, float, list, dict)):
        raise DataFileError(f"{where}: 'label' must be a string or an integer, not {label!r:.60}")
    return LabeledFile(path, None if label is None or label == "" else str(label))


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
