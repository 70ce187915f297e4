"""`ember export`: models as programs of other runtimes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ember_ml._core.errors import ArgumentError
from ember_ml.cli import output
from ember_ml.cli.generate import find_checkpoint
from ember_ml.cli.settings import JsonOption, Settings


def export(
    settings: Settings,
    checkpoint: Annotated[
        Path, typer.Argument(help="Folder of a checkpoint or of a training run.")
    ],
    out: Annotated[Path, typer.Argument(help="File to write, such as model.pt2 or model.onnx.")],
    format: Annotated[  # noqa: A002
        str, typer.Option(help="torch-export, or onnx for ONNX Runtime.")
    ] = "torch-export",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a model as a program that runs without Ember, and compare the numbers of both."""
    import ember_ml
    from ember_ml import interop

    if out.exists() and not overwrite:
        raise ArgumentError(f"{out} exists; choose another name, or pass --overwrite")
    model = ember_ml.load(find_checkpoint(checkpoint))
    output.remark(f"exporting {type(model).__name__} as {format} ...")
    written = interop.export(model, out, format)
    if as_json:
        output.write_json({**written._asdict(), "path": str(written.path)})
        return
    shape = ", ".join(map(str, written.shape))
    output.say(
        f"{out}: input ({shape}), {out.stat().st_size:,} bytes; differs from the model by at most "
        f"{written.error:.1e}"
    )
