"""`ember convert`: checkpoints from and for transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.generate import find_checkpoint
from ember_ml.cli.settings import Settings


def convert(
    settings: Settings,
    source: Annotated[Path, typer.Argument(help="The folder to read.")],
    target: Annotated[Path, typer.Argument(help="The folder to write.")],
    export: Annotated[
        bool, typer.Option("--export", help="Write a checkpoint of Ember for transformers.")
    ] = False,
) -> None:
    """Make a checkpoint of transformers one of Ember; or, with --export, the other way."""
    import ember_ml
    from ember_ml.nn.models import convert as conversion

    if export:
        model = ember_ml.load(find_checkpoint(source))
        conversion.export(model, target)
    else:
        model = conversion.convert(source, target)
    count = model.num_parameters()
    output.say(f"{target}: {type(model).__name__}, {count:,} parameters")
