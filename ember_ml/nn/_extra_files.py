"""Files that modules save next to their values, such as tokenizers."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from ember_ml._core.checksums import is_file_name
from ember_ml._core.errors import EmberError

if TYPE_CHECKING:
    from ember_ml.nn.module import Module

Files = Mapping[str, bytes]
"""File name -> content."""


class ExtraFilesError(EmberError, ValueError):
    """Files that a module cannot save or load."""


def collect(
    model: Module, reserved: Collection[str]
) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    """Return the extra files of a model and all modules inside it.

    Args:
        model: The model.
        reserved: Names of the other files of the folder.

    Returns:
        The contents by file name in the folder, and a table for `config.json`: file name in the
        folder -> dotted name of the module and name of its file.
    """
    contents: dict[str, bytes] = {}
    owners: dict[str, list[str]] = {}
    taken = {name.casefold() for name in reserved}
    for module_name, module in model.named_modules():
        for name, content in module.extra_files().items():
            _check(module, name, content)
            unique = _unique_name(f"{module_name}.{name}" if module_name else name, taken)
            contents[unique], owners[unique] = bytes(content), [module_name, name]
    return contents, owners


def _check(module: Module, name: object, content: object) -> None:
    where = f"{type(module).__name__}.extra_files"
    if not is_file_name(name) or str(name).startswith("."):
        raise ExtraFilesError(
            f"{where}: {name!r:.80} must be a file name without a folder and a leading dot"
        )
    if not isinstance(content, (bytes, bytearray)):
        raise ExtraFilesError(f"{where}: {name!r} must be bytes, not {type(content).__name__}")


def _unique_name(name: str, taken: set[str]) -> str:
    """Return a file name for any system that no other file has, and add it to the taken ones."""
    plain = re.sub(r"[^\w.-]", "_", name)
    unique, number = plain, 1
    while unique.casefold() in taken:  # some file systems ignore the case
        number += 1
        unique = f"{number}-{plain}"
    taken.add(unique.casefold())
    return unique


@contextlib.contextmanager
def loaded(model: Module, files: Mapping[str, Files]) -> Iterator[None]:
    """Load the extra files of a model; restore the previous ones if the block raises.

    Args:
        model: The model.
        files: Dotted name of a module -> its files.

    Raises:
        ExtraFilesError: If a module cannot load its files. Nothing is changed then.
    """
    undo = snapshot(model)
    try:
        _load(model, files)
        yield
    except BaseException:
        undo()
        raise


def snapshot(model: Module) -> Callable[[], None]:
    """Return a function that restores the current extra files of a model.

    Args:
        model: The model.
    """
    before = [(module, module.extra_files()) for module in model.modules() if _has_hook(module)]

    def undo() -> None:
        for module, files in before:
            if module.extra_files() != files:
                module.load_extra_files(files)

    return undo


def _load(model: Module, files: Mapping[str, Files]) -> None:
    modules = dict(model.named_modules())
    for name in files:
        if name not in modules:
            raise ExtraFilesError(
                f"{', '.join(files[name])} belongs to the module {name!r:.80}, which "
                f"{type(model).__name__} does not have"
            )
    for name, module in modules.items():
        own = files.get(name, {})
        if not own and not _has_hook(module):
            continue
        try:
            module.load_extra_files(own)
        except Exception as error:  # modules of any class run here
            title = f"{type(module).__name__} {name!r}" if name else type(module).__name__
            raise ExtraFilesError(
                f"{title} cannot load its files ({', '.join(own) or 'none'}): {error!s:.500}"
            ) from error


def _has_hook(module: Module) -> bool:
    """Return whether the class of a module loads extra files."""
    from ember_ml.nn.module import Module

    return type(module).load_extra_files is not Module.load_extra_files
