"""`ember trace`: the spikes of a model and their causes, as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.generate import find_checkpoint
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml._core.tensor import Tensor
    from ember_ml.nn import Module


def trace(
    settings: Settings,
    checkpoint: Annotated[
        Path, typer.Argument(help="Folder of a checkpoint or of a training run.")
    ],
    inputs: Annotated[
        Path,
        typer.Option(
            "--input",
            help="Input, (batch, time, features) or one example, or token ids: .npy, .npz, "
            ".safetensors or .csv.",
        ),
    ],
    target: Annotated[
        Path | None, typer.Option(help="Targets, for the influence of spikes on the loss.")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="Loss, see `ember losses`.", show_default="cross_entropy or mse"),
    ] = None,
    row: Annotated[int, typer.Option(min=0, help="Row of the batch to show.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Most causes to list for each spike.")] = 24,
    out: Annotated[Path, typer.Option("--output", help="Page to write.")] = Path("trace.html"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is not a trace page.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a model of spiking neurons, and write a page that shows the causes of each spike."""
    import ember_ml
    from ember_ml._core.errors import ArgumentError
    from ember_ml.training import tracing
    from ember_ml.training.tracing.page import check_target
    from ember_ml.training.tracing.trace import check_spiking

    if loss is not None and target is None:
        raise ArgumentError(f"--loss {loss} needs targets: pass --target")
    check_target(out, overwrite)
    model = ember_ml.load(find_checkpoint(checkpoint))
    check_spiking(model)
    x, y = _inputs(model, inputs, row), None
    if target is not None:
        y = _targets(target, x)
    result = tracing.trace(model, x, y, loss)
    tracing.write_trace(result, out, row, top, overwrite=overwrite)
    context = result.context
    counts = {layer: len(context.spikes(layer, batch=row)) for layer in context.layers}
    if as_json:
        output.write_json({"path": str(out), "spikes": counts, "loss": result.loss})
        return
    words = ", ".join(f"{layer} {count} spikes" for layer, count in counts.items())
    output.say(f"{out}: {words}")


def _inputs(model: Module, path: Path, row: int) -> Tensor:
    """Return the inputs as a batch, in the dtype and on the backend of the model."""
    from ember_ml import ops
    from ember_ml._core.errors import ArgumentError
    from ember_ml.cli.array_input import read_array
    from ember_ml.nn.layers import Embedding
    from ember_ml.nn.tensor import array

    x = array(read_array("--input", path, "inputs"))
    tokens = any(isinstance(each, Embedding) for each in model.modules())
    if not tokens:
        parameters = model.parameters()
        x = ops.astype(x, parameters[0].dtype if parameters else "float32")
    axes = 2 if tokens else 3
    if x.ndim == axes - 1:
        x = ops.expand_dims(x, 0)
    if x.ndim != axes or not all(x.shape):
        names = (
            "(batch, time) or (time,)" if tokens else "(batch, time, features) or (time, features)"
        )
        raise ArgumentError(
            f"--input: {path} has shape {x.shape}; expected {names}, with at least one element"
        )
    if row >= x.shape[0]:
        raise ArgumentError(f"--row {row}: {path} has {x.shape[0]} rows, counted from 0")
    return x


def _targets(path: Path, x: Tensor) -> Tensor:
    """Return the targets as a batch of the size of the inputs."""
    from ember_ml import ops
    from ember_ml._core.errors import ArgumentError
    from ember_ml.cli.array_input import read_array
    from ember_ml.nn.tensor import array

    y = array(read_array("--target", path, "targets"))
    if y.ndim == 0 or (y.shape[0] != x.shape[0] and x.shape[0] == 1):
        y = ops.expand_dims(y, 0)
    if y.shape[0] != x.shape[0]:
        raise ArgumentError(
            f"--target: {path} has {y.shape[0]} rows, and the input has {x.shape[0]}"
        )
    return ops.astype(y, x.dtype) if y.dtype.is_floating else y
