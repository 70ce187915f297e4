"""HTML page of a trace, in one file."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from ember_ml._core.errors import ArgumentError
from ember_ml._core.files import write_atomically
from ember_ml.training.reports.document import document
from ember_ml.training.reports.markup import section, text
from ember_ml.training.tracing.gather import gather
from ember_ml.training.tracing.trace import Trace

TITLE = "Spikes and their causes"
TOP = 24
"""Default for the maximum number of causes of a spike."""
MARK = '<section id="raster"'
"""What a trace page contains, so that it is recognized."""


def write_trace(
    trace: Trace,
    path: str | os.PathLike[str],
    row: int = 0,
    top: int = TOP,
    *,
    overwrite: bool = False,
) -> Path:
    """Write the page of a trace; it is self-contained, and loads no other files.

    Args:
        trace: The recorded run.
        path: File to write. An earlier trace page is replaced.
        row: Row of the batch.
        top: Maximum number of causes of a spike.
        overwrite: Whether to replace a file that is not a trace page.

    Returns:
        Path of the page.
    """
    target = Path(path)
    check_target(target, overwrite)
    write_atomically(target, page(trace, row, top).encode("utf-8", "replace"))
    return target


def check_target(path: Path, overwrite: bool) -> None:
    """Raise an error if a file exists that must not be replaced.

    Args:
        path: The file.
        overwrite: Whether any file may be replaced.
    """
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; choose the name of a file, such as trace.html")
    if overwrite or not path.exists():
        return
    if MARK not in path.read_bytes().decode("utf-8", "replace"):
        raise ArgumentError(
            f"{path} exists and is not a trace page; choose another name, or pass --overwrite"
        )


def page(trace: Trace, row: int = 0, top: int = TOP) -> str:
    """Return the HTML of a trace; the arguments are those of `write_trace`."""
    data = gather(trace, row, top)
    sections = [_raster_section(data), _causes_section(data), _space_section(data)]
    sections.append(_loss_section(data))
    return document(
        TITLE,
        f"<p>{_summary(data)}</p>\n",
        sections,
        data,
        style=_resource("trace.css"),
        script=_resource("trace.js"),
    )


def _resource(name: str) -> str:
    return files("ember_ml.training.tracing").joinpath(name).read_text(encoding="utf-8")


def _summary(data: dict[str, Any]) -> str:
    counts = []
    for at, layer in enumerate(data["layers"]):
        spikes = sum(spike[0] == at for spike in data["spikes"])
        counts.append(f"{layer['name']} {spikes} spikes of {layer['neurons']} neurons")
    loss = "" if data["loss"] is None else f" The loss is {data['loss']:.4g}."
    row = f"{data['model']}, row {data['row']} of the batch: "
    return text(f"{row}{'; '.join(counts)}.{loss}")


def _raster_section(data: dict[str, Any]) -> str:
    color = ""
    if data["loss"] is not None:
        color = (
            '<fieldset class="switch"><legend>Color</legend>'
            '<label><input type="radio" name="color" value="causes" checked>Causes</label>'
            '<label><input type="radio" name="color" value="loss">Influence on the loss</label>'
            "</fieldset>"
        )
    depth = (
        '<fieldset class="switch"><legend>Depth</legend>'
        + "".join(
            f'<label><input type="radio" name="depth" value="{depth}"'
            f"{' checked' if depth == 1 else ''}>{depth}</label>"
            for depth in (1, 2, 3, 4)
        )
        + "</fieldset>"
    )
    note = (
        "Click a spike: its causes light up, those that raised its voltage and those that lowered "
        "it. Depth 2 adds the causes of the causes. The arrow keys move to the next spike."
    )
    key = (
        '<p class="key"><span class="excites">raises the voltage</span> '
        '<span class="inhibits">lowers it</span> <span class="chosen">chosen spike</span></p>'
    )
    plot = (
        '<div class="rasters" tabindex="0" role="application" aria-label="Raster of spikes"></div>'
    )
    return section("raster", "Raster", f'<div class="tools">{depth}{color}</div>{key}{plot}', note)


def _causes_section(data: dict[str, Any]) -> str:
    if not data["spikes"]:
        return ""
    note = (
        "Signed contributions to the voltage of the chosen spike, before its reset; they sum to "
        "the voltage. Click a row to go to that spike."
    )
    return section("causes", "Causes", '<div id="chosen" aria-live="polite"></div>', note)


def _space_section(data: dict[str, Any]) -> str:
    if not any(layer["positions"] for layer in data["layers"]):
        return ""
    turns = any(layer["positions"] and len(layer["positions"][0]) > 2 for layer in data["layers"])
    note = "Neurons at their positions, with the synapses that carried the causes."
    note += " Drag to turn." if turns else ""
    return section("space", "Space", '<div class="spaces"></div>', note)


def _loss_section(data: dict[str, Any]) -> str:
    if data["loss"] is None:
        return ""
    note = (
        "Derivative of the loss with respect to each spike, the largest first: to first order, "
        "removing the spike changes the loss by minus this. Click a row to go to that spike."
    )
    return section("loss", "Influence on the loss", '<div id="ranking"></div>', note)
