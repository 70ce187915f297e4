"""`ember examples`: list the example scripts and configs, and copy them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

SUFFIXES = (".py", ".yaml")


def examples(
    settings: Settings,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Files or folders to copy, such as own_parts.py, configs or all.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to copy to.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """List the examples, or copy some of them into a folder."""
    files = example_files()
    if names:
        copied = [str(_copy(files[name], out / name)) for name in _selected(files, names, out)]
        output.write_json(copied) if as_json else output.say("\n".join(copied))
        return
    rows = [(name, _summary(path)) for name, path in files.items()]
    if as_json:
        output.write_json([{"name": name, "summary": summary} for name, summary in rows])
    else:
        output.console().print(output.table(rows, "example", "description"))


def example_files() -> dict[str, Path]:
    """Return the example files by their path within the folder of examples.

    An installed package contains the folder. In a source tree it is next to the package.
    """
    package = Path(__file__).parents[1]
    folder = next(
        path for path in (package / "examples", package.parent / "examples") if path.is_dir()
    )
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return {path.relative_to(folder).as_posix(): path for path in paths}


def _selected(files: dict[str, Path], names: list[str], out: Path) -> list[str]:
    """Return the files that the names refer to; none of them may exist in the target folder."""
    from ember_ml._core.errors import ArgumentError
    from ember_ml.registry.base import close_matches

    selected: dict[str, None] = {}
    for name in names:
        folder = "" if name == "all" else f"{name.rstrip('/')}/"
        matches = [name] if name in files else [file for file in files if file.startswith(folder)]
        if not matches:
            hint = close_matches(name, files) or "; list them with: ember examples"
            raise ArgumentError(f"no example named {name!r}{hint}")
        selected |= dict.fromkeys(matches)
    for name in selected:
        if (out / name).exists():
            raise ArgumentError(f"{out / name} exists already; choose another folder with --out")
    return list(selected)


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(source, target))


def _summary(path: Path) -> str:
    """Return the first line of a file's docstring or comment."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip('r"# ').rstrip('"') if first[:1] in ('"', "r", "#") else ""
