"""The command `ember` and what it is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from ember_ml.cli import about, components, convert, generate, mad, train, wiring
from ember_ml.cli.settings import (
    BackendOption,
    DebugOption,
    DeviceOption,
    PluginOption,
    SeedOption,
    Settings,
    command,
)

app = typer.Typer(
    name="ember",
    help="Sequence models from mechanistic primitives: compare, train, use and move them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ember_ml import __version__

        typer.echo(f"ember {__version__}")
        raise typer.Exit


@app.callback()
def begin(
    ctx: typer.Context,
    backend: BackendOption = None,
    device: DeviceOption = None,
    seed: SeedOption = None,
    debug: DebugOption = False,
    plugin: PluginOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which it is.")
    ] = False,
) -> None:
    """Sequence models from mechanistic primitives: compare, train, use and move them."""
    ctx.obj = Settings(backend, device, seed, debug, plugin)


app.add_typer(mad.app, name="mad", rich_help_panel="Models")
command(app, "train", rich_help_panel="Models")(train.train)
command(app, "generate", rich_help_panel="Models")(generate.generate)
command(app, "convert", rich_help_panel="Models")(convert.convert)
app.add_typer(wiring.app, name="wiring", rich_help_panel="Models")
for kind, summary in components.KINDS.items():
    command(app, kind, help=summary, rich_help_panel="What there is")(components.lister(kind))
command(app, "backends", rich_help_panel="This machine")(about.backends)
command(app, "info", rich_help_panel="This machine")(about.info)
