"""The command `ember` and its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from ember_ml.cli import (
    about,
    components,
    convert,
    examples,
    export,
    generate,
    kernels,
    launch,
    mad,
    memory,
    pipeline,
    profile,
    quantize,
    serve,
    trace,
    train,
    tune,
    wiring,
)
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
    help="Sequence models from mechanistic primitives: compare, train, use and convert them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
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
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Sequence models from mechanistic primitives: compare, train, use and convert them."""
    ctx.obj = Settings(backend, device, seed, debug, plugin)


MODELS, COMPONENTS, MACHINE = "Models", "Components and examples", "This machine"
app.add_typer(mad.app, name="mad", rich_help_panel=MODELS)
command(app, "train", panel=MODELS)(train.train)
command(app, "launch", panel=MODELS, passes_rest=True)(launch.launch)
command(app, "memory", panel=MODELS)(memory.memory)
command(app, "profile", panel=MODELS)(profile.profile)
command(app, "tune", panel=MODELS)(tune.tune)
app.add_typer(pipeline.app, name="pipeline", rich_help_panel=MODELS)
command(app, "generate", panel=MODELS)(generate.generate)
command(app, "serve", panel=MODELS)(serve.serve)
command(app, "convert", panel=MODELS)(convert.convert)
command(app, "export", panel=MODELS)(export.export)
command(app, "quantize", panel=MODELS)(quantize.quantize)
app.add_typer(wiring.app, name="wiring", rich_help_panel=MODELS)
command(app, "trace", panel=MODELS)(trace.trace)
for kind, summary in components.KINDS.items():
    command(app, kind, summary=summary, panel=COMPONENTS)(components.lister(kind))
command(app, "examples", panel=COMPONENTS)(examples.examples)
command(app, "backends", panel=MACHINE)(about.backends)
command(app, "kernels", panel=MACHINE)(kernels.kernels)
command(app, "info", panel=MACHINE)(about.info)
