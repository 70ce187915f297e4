"""`ember layers`, `ember models` ...: what has a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import completion, output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.registry import Entry

KINDS = {
    "layers": "The layers that models are made of, or one of them.",
    "blocks": "The blocks: layers with norms and what goes past them.",
    "models": "The models.",
    "wirings": "The wirings, of neurons and of blocks.",
    "optimizers": "The optimizers.",
    "schedules": "The schedules of learning rates.",
    "losses": "The losses.",
    "metrics": "The metrics.",
}
"""Kinds of the registry that are commands, and what is said of them."""


def lister(kind: str) -> Callable[..., None]:
    """The command that shows a kind."""
    name_argument = Annotated[
        str | None,
        typer.Argument(
            help="Show this one: what it does, and its fields.",
            autocompletion=completion.components(kind),
            show_default=False,
        ),
    ]

    def show(settings: Settings, name: Any = None, as_json: Any = False) -> None:
        from ember_ml.registry import available, get

        if name is not None:
            _show_one(get(name, kind), as_json)
        elif as_json:
            output.write_json([_as_data(entry) for entry in available(kind)])
        else:
            _show_all(available(kind))

    show.__annotations__ = {"settings": Settings, "name": name_argument, "as_json": JsonOption}
    return show


def _as_data(entry: Entry) -> dict[str, Any]:
    return {"name": _bare(entry.name), "aliases": _aliases(entry), "summary": entry.summary}


def _bare(name: str) -> str:
    return name.partition("/")[2]


def _aliases(entry: Entry) -> list[str]:
    return [_bare(alias) for alias in entry.aliases]


def _show_all(entries: list[Entry]) -> None:
    rows = [(_bare(each.name), ", ".join(_aliases(each)), each.summary) for each in entries]
    output.console().print(output.table(rows, "name", "also", "what it is"))


def _show_one(entry: Entry, as_json: bool) -> None:
    from ember_ml.cli.describe import fields_of, parts_of

    parts, fields = parts_of(entry.target), fields_of(entry)
    if as_json:
        more = {"fields": [each._asdict() for each in fields], "doc": parts}
        output.write_json({**_as_data(entry), **more})
        return
    console = output.console()
    also = f"  (also {', '.join(_aliases(entry))})" if entry.aliases else ""
    console.print(f"[bold cyan]{entry.name}[/]{also}")
    console.print(parts.pop(""), markup=False)
    if fields:
        rows = [(each.name, each.type, each.shown_default(), each.help) for each in fields]
        console.print()
        console.print(output.table(rows, "field", "type", "default", "what it is"))
    for title, text in parts.items():
        console.print(f"\n[bold]{title}[/]")
        console.print(text, markup=False)
