"""`ember layers`, `ember models` and so on: list and describe components."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import completion, output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.registry import Entry

KINDS = {
    "layers": "List the layers, or describe one.",
    "blocks": "List the blocks: layers with normalization and residual connections.",
    "models": "List the models, or describe one.",
    "features": "List the feature extractors, or describe one.",
    "augmentations": "List the augmentations of training inputs, or describe one.",
    "selections": "List the selection rules of self-training, or describe one.",
    "pipelines": "List the pipelines and their parts, or describe one.",
    "wirings": "List the wirings of neurons and of blocks, or describe one.",
    "optimizers": "List the optimizers, or describe one.",
    "schedules": "List the learning rate schedules, or describe one.",
    "losses": "List the losses, or describe one.",
    "metrics": "List the metrics, or describe one.",
}
"""Kinds of components that are commands, with their help."""


def lister(kind: str) -> Callable[..., None]:
    """Return the command that lists a kind of components."""
    name_argument = Annotated[
        str | None,
        typer.Argument(
            help="Describe this one: docstring and fields.",
            autocompletion=completion.components(kind),
            show_default=False,
        ),
    ]

    def show(settings: Settings, name: str | None = None, as_json: bool = False) -> None:
        from ember_ml.registry import available, get

        if name is not None:
            _show_one(get(name, kind), as_json)
        elif as_json:
            output.write_json([_as_data(entry) for entry in available(kind)])
        else:
            _show_all(available(kind))

    show.__annotations__ = {"settings": Settings, "name": name_argument, "as_json": JsonOption}
    return show


def _as_data(entry: Entry) -> dict[str, object]:
    return {"name": entry.bare, "aliases": _aliases(entry), "summary": entry.summary}


def _aliases(entry: Entry) -> list[str]:
    return [alias.partition("/")[2] for alias in entry.aliases]


def _show_all(entries: list[Entry]) -> None:
    rows = [(entry.bare, ", ".join(_aliases(entry)), entry.summary) for entry in entries]
    output.console().print(output.table(rows, "name", "aliases", "description"))


def _show_one(entry: Entry, as_json: bool) -> None:
    from ember_ml.cli.describe import docstring_sections, fields_of

    sections, fields = docstring_sections(entry.target), fields_of(entry)
    if as_json:
        more = {"fields": [field._asdict() for field in fields], "doc": sections}
        output.write_json({**_as_data(entry), **more})
        return
    console = output.console()
    aliases = f"  (alias {', '.join(_aliases(entry))})" if entry.aliases else ""
    console.print(f"[bold cyan]{entry.name}[/]{aliases}")
    console.print(sections.pop(""), markup=False)
    if fields:
        rows = [(field.name, field.type, field.default_text(), field.help) for field in fields]
        console.print()
        console.print(output.table(rows, "field", "type", "default", "description"))
    for title, text in sections.items():
        console.print(f"\n[bold]{title}[/]")
        console.print(text, markup=False)
