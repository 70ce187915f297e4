"""`ember wiring`: draw wirings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import completion, output
from ember_ml.cli.settings import Settings, command

if TYPE_CHECKING:
    from ember_ml.configs import Config
    from ember_ml.nn.wirings import BlockWiring, NeuronWiring

app = typer.Typer(help="Draw wirings of neurons and of blocks.", no_args_is_help=True)
FILES = (".yaml", ".yml", ".json")


@command(app, "draw")
def draw(
    settings: Settings,
    source: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG|NAME",
            help="YAML file, or name of a wiring; see `ember wirings`.",
            autocompletion=completion.components("wirings"),
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Fields, such as units=20.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="Image file: .png, .svg or .pdf.")] = Path("wiring.png"),
    inputs: Annotated[
        int, typer.Option(min=1, help="Number of inputs of a wiring of neurons.")
    ] = 4,
) -> None:
    """Draw a wiring into an image file."""
    import matplotlib
    from matplotlib.figure import Figure

    from ember_ml._core.errors import ArgumentError
    from ember_ml.nn.wirings import NeuronWiring

    matplotlib.use("agg")  # no window
    wiring = wiring_config(source, changes or []).create()
    if isinstance(wiring, NeuronWiring):
        wiring.build(inputs)
    figure = wiring.draw().get_figure()
    assert isinstance(figure, Figure)
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(out, dpi=144, bbox_inches="tight")
    except ValueError as error:  # a suffix unknown to matplotlib
        raise ArgumentError(f"--out {out}: {error}") from None
    output.say(f"{out}: {_summary(wiring)}")


def _summary(wiring: NeuronWiring | BlockWiring) -> str:
    from ember_ml.nn.wirings import NeuronWiring

    name = type(wiring).__name__
    if isinstance(wiring, NeuronWiring):
        count = wiring.synapse_count + wiring.sensory_synapse_count
        return f"{name}, {wiring.input_dim} inputs, {wiring.units} neurons, {count} synapses"
    return f"{name}, {len(wiring.blocks)} blocks"


def wiring_config(source: str, changes: list[str]) -> Config:
    """Return the config in a file, or of a name with fields."""
    from ember_ml.configs import Config, ConfigError, load, override
    from ember_ml.configs.errors import Problem

    if Path(source).suffix in FILES:
        config = load(source, changes)
    else:
        config = Config.from_dict(override({"type": source}, changes), kind="wirings")
    if not config.component.startswith("wirings/"):
        wrong = f"must be one of the wirings, not {config.component!r}"
        raise ConfigError(source, [Problem(("type",), wrong)])
    return config
