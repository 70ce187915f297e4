"""`ember convert`: import and export of transformers checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.generate import find_checkpoint
from ember_ml.cli.settings import Settings


def convert(
    settings: Settings,
    source: Annotated[Path, typer.Argument(help="Folder to read.")],
    target: Annotated[Path, typer.Argument(help="Folder to write.")],
    export: Annotated[
        bool, typer.Option("--export", help="Convert an Ember checkpoint for transformers.")
    ] = False,
    family: Annotated[
        str | None,
        typer.Option(help="With --export: model_type to write. Default: the first that fits."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(help="Field of config.json that does not matter; may be repeated."),
    ] = None,
) -> None:
    """Convert a transformers checkpoint to an Ember checkpoint; with --export, the reverse."""
    import ember_ml
    from ember_ml.nn.models import convert as conversion
    from ember_ml.serving.chat import copy_template

    if export:
        model = ember_ml.load(find_checkpoint(source))
        conversion.export(model, target, family)
    else:
        model = conversion.convert(source, target, ignore=ignore or ())
        copy_template(source, target)
    count = model.num_parameters()
    output.say(f"{target}: {type(model).__name__}, {count:,} parameters")
