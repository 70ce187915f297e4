"""Options and error handling shared by all commands."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

import typer

from ember_ml.cli import completion

PANEL = "Common options"
BackendOption = Annotated[
    str | None,
    typer.Option(
        help="Backend to compute on.",
        autocompletion=completion.backends,
        rich_help_panel=PANEL,
        show_default="the active one",
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="Device of the backend.",
        autocompletion=completion.devices,
        rich_help_panel=PANEL,
        show_default="its first one",
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(min=0, help="Seed of all random numbers.", rich_help_panel=PANEL)
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=PANEL)
]
PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE|FILE.py",
        help="Import this first, to register your layers, tasks or models; repeatable.",
        rich_help_panel=PANEL,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, for scripts.")]


class Settings(NamedTuple):
    """Values of the shared options, given before or after the command."""

    backend: str | None = None
    device: str | None = None
    seed: int | None = None
    debug: bool = False
    plugin: Sequence[str] | None = None

    def over(self, other: Settings) -> Settings:
        """Return these settings, with those of `other` for options that were not given."""
        return Settings(
            backend=other.backend if self.backend is None else self.backend,
            device=other.device if self.device is None else self.device,
            seed=other.seed if self.seed is None else self.seed,
            debug=self.debug or other.debug,
            plugin=(*(other.plugin or ()), *(self.plugin or ())),
        )

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Apply the settings within the block."""
        from ember_ml import ops
        from ember_ml.backend import devices, selection, use_backend
        from ember_ml.registry import plugins

        # check_name: tensors compare the names of their backends by identity
        name = None if self.backend is None else selection.check_name(self.backend)
        for plugin in self.plugin or ():
            plugins.use(plugin)
        with contextlib.nullcontext() if name is None else use_backend(name):
            if self.device is not None:
                devices.set_device(self.device)
            if self.seed is not None:
                ops.random.set_seed(self.seed)
            yield


SHARED: dict[str, tuple[object, object]] = {
    "backend": (BackendOption, None),
    "device": (DeviceOption, None),
    "seed": (SeedOption, None),
    "debug": (DebugOption, False),
    "plugin": (PluginOption, None),
}
"""Annotation and default of each shared option."""


def command(
    app: typer.Typer,
    name: str,
    *,
    summary: str | None = None,
    panel: str | None = None,
    passes_rest: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers a function as a command with the shared options.

    Args:
        app: Group of the command.
        name: Name of the command.
        summary: Help text. Default: the docstring.
        panel: Panel of the help page.
        passes_rest: Whether all words after the first argument are arguments, also options.
    """
    context = {"allow_interspersed_args": False} if passes_rest else None

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, help=summary, rich_help_panel=panel, context_settings=context)(
            _with_shared_options(function)
        )
        return function

    return decorate


def _with_shared_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function that takes the shared options and passes them as `Settings`."""

    @functools.wraps(function)
    def run(ctx: typer.Context, **values: typing.Any) -> None:
        own = Settings(**{name: values.pop(name) for name in SHARED})
        settings = own.over(ctx.obj or Settings())
        with report_errors(settings.debug), settings.active():
            function(settings, **values)

    parameters = [_parameter("ctx", typer.Context, inspect.Parameter.empty)]
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        parameters.append(_parameter(parameter.name, hints[parameter.name], parameter.default))
    parameters += [_parameter(name, hint, default) for name, (hint, default) in SHARED.items()]
    del run.__wrapped__  # its signature differs
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(name: str, hint: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


@contextlib.contextmanager
def report_errors(debug: bool) -> Iterator[None]:
    """Convert expected errors to a line on standard error and exit code 2."""
    from ember_ml._core.errors import EmberError

    try:
        yield
    except BrokenPipeError:  # the reader has closed the pipe, which is not an error
        raise
    except (EmberError, OSError) as error:
        if _is_recorded(error, debug):
            raise typer.Exit(2) from None
        if debug:
            import traceback

            typer.echo(traceback.format_exc(), err=True)
        typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
        typer.echo(_message(error), err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None


def _is_recorded(error: Exception, debug: bool) -> bool:
    """Return whether `ember launch` has started this process, and shows the error."""
    import os

    if "EMBER_LAUNCH_FOLDER" not in os.environ:
        return False
    from ember_ml.distributed import failures

    return failures.record(error, 2, None if debug else _message(error))


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return "\n  ".join([str(error), *getattr(error, "__notes__", ())])
