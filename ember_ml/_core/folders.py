"""Atomic writes of a set of files in a folder, next to files that belong to others.

A save writes its files to a hidden folder inside the target. Renaming that folder to `.ember-save`
commits the save; then each file is moved to its place. Readers and writers that find a committed
save complete it first, so that a crash at any moment leaves the old files or the new ones.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ember_ml._core import checksums
from ember_ml._core.checksums import Manifest
from ember_ml._core.earlier_folders import clean_up, old_folder
from ember_ml._core.errors import FolderError
from ember_ml._core.files import read_regular, sync_folder
from ember_ml._core.locks import WAIT, held

COMMITTED = ".ember-save"
_NEW = ".ember-new-"
_STALE = ".stale.json"


class Kind(NamedTuple):
    """Kind of folder that a save writes.

    Attributes:
        name: Name in `checksums.json`, such as "checkpoint".
        title: Name in error messages, such as "an Ember checkpoint".
        files: Names of the files that a save of this kind may write. A save may add others, which
            are listed in its `checksums.json`.
        recognizes: Returns whether a folder without checksums was written by an earlier version.
        extra_names: Returns the names of the other files that a save without checksums wrote.
    """

    name: str
    title: str
    files: frozenset[str]
    recognizes: Callable[[Path], bool]
    extra_names: Callable[[Path], frozenset[str]] = lambda folder: frozenset()


class Log(NamedTuple):
    """Append-only file that each save extends.

    Attributes:
        name: File name.
        write: Called as `write(log, staged)` with the current path of the log and the path for a
            new one. It appends to the log in place, or writes a new one.
    """

    name: str
    write: Callable[[Path, Path], None]


class Folder:
    """Consistent set of the files of a save, for a reader.

    Args:
        path: The folder.
        staged: Folder with the files of a committed save that could not be moved to their place,
            because the folder is not writable.
    """

    def __init__(self, path: Path, staged: Path | None = None) -> None:
        self.path = path
        self._staged = staged
        self._stale = frozenset(_stale_names(staged)) if staged is not None else frozenset()
        self._manifest: Manifest | None = None

    def file(self, name: str) -> Path:
        """Return the path of a file, which need not exist."""
        staged = self._staged
        if staged is not None and (name in self._stale or (staged / name).exists()):
            return staged / name
        return self.path / name

    def read(self, name: str) -> bytes:
        """Return the content of a file after comparing it with its checksum.

        Raises:
            FileNotFoundError: If there is no such file.
            FolderError: If the content is not what was saved.
        """
        content = read_regular(self.file(name))
        self.verify(name, content)
        return content

    def verify(self, name: str, content: checksums.Buffer) -> None:
        """Raise a FolderError if a file's content is not what was saved.

        Files of folders without `checksums.json`, as earlier versions wrote them, are not checked.

        Args:
            name: Name of the file.
            content: Its content.
        """
        self.compare(name, checksums.entry(content))

    def compare(self, name: str, actual: checksums.Entry) -> None:
        """Raise a FolderError if the size and checksum of a file are not those of the save.

        Args:
            name: Name of the file.
            actual: Its size and checksum.
        """
        expected = self._expected(name)
        if expected is not None and actual != expected:
            self.compare_size(name, actual.size)
            raise FolderError(f"{self.path / name} is damaged: its checksum is wrong; {_HINT}")

    def compare_size(self, name: str, size: int) -> None:
        """Raise a FolderError if the size of a file is not that of the save.

        Args:
            name: Name of the file.
            size: Its size in bytes.
        """
        expected = self._expected(name)
        if expected is not None and size != expected.size:
            raise FolderError(
                f"{self.path / name} is damaged: it has {size} bytes, but {expected.size} "
                f"were saved; {_HINT}"
            )

    def _expected(self, name: str) -> checksums.Entry | None:
        """Return the size and checksum of a file; None if it has none."""
        manifest = self._checksums()
        if manifest is None or name in manifest.logs:
            return None
        if name not in manifest.files:
            raise FolderError(
                f"{self.path / name} does not belong to this save: {checksums.NAME} lists "
                f"{', '.join(manifest.files)}; {_HINT}"
            )
        return manifest.files[name]

    def _checksums(self) -> Manifest | None:
        if self._manifest is None:
            try:
                self._manifest = checksums.parse(read_regular(self.file(checksums.NAME)))
            except FileNotFoundError:
                return None
            except (OSError, ValueError) as error:
                raise FolderError(
                    f"{self.path / checksums.NAME} is damaged: {error}; {_HINT}"
                ) from None
        return self._manifest


_HINT = f"restore the file from a backup, or delete {checksums.NAME} if it was changed on purpose"


@contextlib.contextmanager
def open_folder(path: str | os.PathLike[str]) -> Iterator[Folder]:
    """Open a folder for reading: within the `with` block no save moves files into it.

    Args:
        path: The folder. It need not exist; its files are then missing.
    """
    target = find_folder(path, wait=0.0)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(FileNotFoundError):
            stack.enter_context(held(target, shared=True))
        staged = target / COMMITTED
        yield Folder(target, staged if _is_committed(staged) else None)


def find_folder(path: str | os.PathLike[str], wait: float = WAIT) -> Path:
    """Return where the content of a folder is, after completing an interrupted save if possible.

    That is the path itself or, after a crash of a version that replaced whole folders, the old
    folder next to it.

    Args:
        path: The folder.
        wait: Seconds to wait for others that use the folder.
    """
    target = Path(path)
    old = old_folder(target)
    if not os.path.exists(target) and os.path.isdir(old):
        return old
    if _is_committed(target / COMMITTED):
        # a reader of a folder that is not writable uses the staged files
        with contextlib.suppress(OSError), held(target, wait=wait):
            _publish(target)
    return target


def write_folder(
    path: str | os.PathLike[str],
    files: Mapping[str, bytes],
    kind: Kind,
    log: Log | None = None,
    others: Callable[[Path], Mapping[str, checksums.Entry]] | None = None,
) -> None:
    """Write files to a folder atomically: readers see all old or all new ones, even after a crash.

    Files not written by a save are not touched. Writers of one folder wait for each other.

    Args:
        path: The folder, or a link to it. Missing parent folders are created.
        files: File name -> content.
        kind: Kind of the folder. Files of an earlier save of this kind that are not in `files` are
            removed.
        log: Append-only file that the save extends.
        others: Called with the folder of the new files; lets other processes write files of their
            own to it, and returns the sizes and checksums of these.

    Raises:
        FolderError: If the folder has a file of one of these names that no such save wrote.
    """
    target = Path(os.path.realpath(path))
    _check_is_folder(target)
    clean_up(target, kind.files, kind.recognizes)
    created = _create(target)
    logs = () if log is None else (log.name,)
    manifest = checksums.manifest(kind.name, files, logs)
    try:
        with _staging(target, manifest, kind) as new:
            for name, content in files.items():
                write_synced(new / name, content)
            if others is not None:
                manifest.files.update(others(new))
            write_synced(new / checksums.NAME, manifest.to_json())
            with held(target):
                _recover(target)
                stale = _stale(target, manifest, kind)
                if log is not None:
                    log.write(target / log.name, new / log.name)
                if stale:
                    write_synced(new / _STALE, json.dumps(sorted(stale)).encode())
                sync_folder(new)
                os.rename(new, target / COMMITTED)
                sync_folder(target)
                _publish(target)
    except BaseException:
        if created:
            with contextlib.suppress(OSError):
                target.rmdir()
        raise


def check_target(path: str | os.PathLike[str], kind: Kind, extra: Iterable[str] = ()) -> None:
    """Raise a FolderError if a save would overwrite files that were not written by a save.

    Args:
        path: The folder, or a link to it. It need not exist.
        kind: Kind of the folder.
        extra: Names of files that the save writes in addition to those of the kind.
    """
    target = find_folder(os.path.realpath(path))
    _check_is_folder(target)
    names = {*kind.files, *extra}
    _stale(target, Manifest(kind.name, dict.fromkeys(names, checksums.Entry(0, 0))), kind)


def remove_folder(path: str | os.PathLike[str], kind: Kind) -> None:
    """Remove the files that a save wrote, and the folder if nothing else is in it.

    Args:
        path: The folder, or a link to it. It need not exist.
        kind: Kind of the folder. If a save of another kind wrote it, it stays.
    """
    target = Path(os.path.realpath(path))
    clean_up(target, kind.files, kind.recognizes)
    with contextlib.suppress(FileNotFoundError), held(target):
        _recover(target)
        names = _own_names(target, kind)
        for name in _manifest_last(names):
            (target / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            target.rmdir()


def holds(path: str | os.PathLike[str], name: str) -> bool:
    """Return whether a folder has a file, after completing an interrupted save."""
    with open_folder(path) as folder:
        return folder.file(name).is_file()


def _check_is_folder(target: Path) -> None:
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{target} is a file, not a folder")


def _create(target: Path) -> bool:
    """Create a folder and its parents; return whether it was missing."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.mkdir()
    except FileExistsError:
        return False
    sync_folder(target.parent)
    return True


@contextlib.contextmanager
def _staging(target: Path, manifest: Manifest, kind: Kind) -> Iterator[Path]:
    """Create a folder for the new files, locked and removed at the end if it is still there."""
    with contextlib.ExitStack() as stack:
        with held(target):
            _recover(target)
            _stale(target, manifest, kind)
            new = target / f"{_NEW}{secrets.token_hex(4)}"
            new.mkdir()
            stack.callback(shutil.rmtree, new, ignore_errors=True)
            stack.enter_context(held(new))  # while it is held, no other writer removes the folder
        yield new


def _stale(target: Path, manifest: Manifest, kind: Kind) -> set[str]:
    """Return the files of an earlier save to remove; raise an error for other files."""
    own = _own_names(target, kind)
    known = kind.files | manifest.names | own
    present = {name for name in known if os.path.lexists(target / name)}
    staged = target / COMMITTED
    if os.path.lexists(staged) and not _is_committed(staged):
        raise FolderError(f"{staged} was not written by a save; move or delete it")
    foreign = sorted((present & manifest.names) - own)
    if foreign:
        raise FolderError(
            f"{target / foreign[0]} was not written by a save of {kind.title} and is not "
            "overwritten; save to another folder, or move the file"
        )
    folders = sorted(name for name in present & own if (target / name).is_dir())
    if folders:
        raise IsADirectoryError(
            errno.EISDIR, "is a folder where a save writes a file", str(target / folders[0])
        )
    return {name for name in present & own if name not in manifest.names}


def _own_names(target: Path, kind: Kind) -> frozenset[str]:
    """Return the names of the files that an earlier save of the kind wrote."""
    try:
        manifest = checksums.parse(read_regular(target / checksums.NAME))
    except (OSError, ValueError):
        if not kind.recognizes(target):
            return frozenset()
        return kind.files | kind.extra_names(target) | {checksums.NAME}
    if manifest.kind != kind.name:
        return frozenset()
    return manifest.names


def _recover(target: Path) -> None:
    """Complete a committed save, and remove the files of killed writers."""
    _publish(target)
    for new in target.glob(f"{_NEW}*"):
        with contextlib.suppress(OSError), held(new, wait=0.0) as is_dead:
            if is_dead:
                shutil.rmtree(new, ignore_errors=True)


def _publish(target: Path) -> None:
    """Move the files of a committed save to their place; the lock of the folder is held."""
    staged = target / COMMITTED
    if not _is_committed(staged):
        return
    names, stale = _staged_names(staged), _stale_names(staged)
    for name in stale:
        (target / name).unlink(missing_ok=True)
    for name in _manifest_last(names):
        with contextlib.suppress(FileNotFoundError):
            os.replace(staged / name, target / name)
    sync_folder(target)
    with contextlib.suppress(FileNotFoundError):
        (staged / _STALE).unlink(missing_ok=True)
        staged.rmdir()


def _is_committed(staged: Path) -> bool:
    """Return whether there is a committed save; a link to another folder is not one."""
    return staged.is_dir() and not staged.is_symlink()


def _staged_names(staged: Path) -> list[str]:
    """Return the files of a committed save; raise an error if there are others."""
    names = [name for name in os.listdir(staged) if name != _STALE]
    try:
        listed = checksums.parse(read_regular(staged / checksums.NAME)).names if names else ()
    except (OSError, ValueError):
        listed = ()
    foreign = sorted(set(names).difference(listed))
    if foreign:
        raise FolderError(
            f"{staged / foreign[0]} was not written by a save; move or delete {staged}"
        )
    return names


def _manifest_last(names: Iterable[str]) -> list[str]:
    """Return sorted names with `checksums.json` last: it always lists the remaining files."""
    return sorted(names, key=lambda name: (name == checksums.NAME, name))


def _stale_names(staged: Path) -> list[str]:
    """Return the files that a committed save removes."""
    try:
        names = json.loads(read_regular(staged / _STALE))
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError):
        names = None
    if not (isinstance(names, list) and all(map(checksums.is_file_name, names))):
        raise FolderError(f"{staged / _STALE} is damaged: it must be a list of file names")
    return names


def write_synced(path: Path, content: bytes) -> None:
    """Write a file, and wait until it is on the disk.

    Args:
        path: The file.
        content: Its content.
    """
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
