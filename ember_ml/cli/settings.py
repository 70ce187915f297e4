"""What every command takes: backend, device and seed; and what becomes of its errors."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from ember_ml.cli import completion

PANEL = "Everywhere"
BackendOption = Annotated[
    str | None,
    typer.Option(
        help="Where to compute.",
        autocompletion=completion.backends,
        rich_help_panel=PANEL,
        show_default="the active one",
    ),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="On which device of it.",
        autocompletion=completion.devices,
        rich_help_panel=PANEL,
        show_default="its first one",
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(min=0, help="Of all random numbers.", rich_help_panel=PANEL)
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show where an error comes from.", rich_help_panel=PANEL)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON, for scripts.")]


PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE|FILE.py",
        help="Import it first: it registers layers, tasks or models of yours; repeatable.",
        rich_help_panel=PANEL,
    ),
]


class Settings(NamedTuple):
    """What was said before the command, or after it."""

    backend: str | None = None
    device: str | None = None
    seed: int | None = None
    debug: bool = False
    plugin: Sequence[str] | None = None

    def over(self, other: Settings) -> Settings:
        """These, and those of another where nothing was said."""
        return Settings(
            backend=other.backend if self.backend is None else self.backend,
            device=other.device if self.device is None else self.device,
            seed=other.seed if self.seed is None else self.seed,
            debug=self.debug or other.debug,
            plugin=(*(other.plugin or ()), *(self.plugin or ())),
        )

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Within the block they hold."""
        from ember_ml import ops
        from ember_ml.backend import devices, selection, use_backend

        # check_name: tensors compare the names of their backends by identity
        name = None if self.backend is None else selection.check_name(self.backend)
        self._load_plugins()
        with contextlib.nullcontext() if name is None else use_backend(name):
            if self.device is not None:
                devices.set_device(self.device)
            if self.seed is not None:
                ops.random.set_seed(self.seed)
            yield

    def _load_plugins(self) -> None:
        from ember_ml.registry import plugins

        for name in self.plugin or ():
            plugins.use(name)


SHARED: dict[str, tuple[Any, Any]] = {
    "backend": (BackendOption, None),
    "device": (DeviceOption, None),
    "seed": (SeedOption, None),
    "debug": (DebugOption, False),
    "plugin": (PluginOption, None),
}


def command(app: typer.Typer, name: str, **options: Any) -> Callable[..., Callable[..., None]]:
    """A decorator that makes a function, whose first argument is the settings, a command.

    Args:
        app: of which group.
        name: what it is called.
        options: of `typer.Typer.command`.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, **options)(_wrapped(function))
        return function

    return decorate


def _wrapped(function: Callable[..., None]) -> Callable[..., None]:
    """The function with the shared options added to its own."""

    @functools.wraps(function)
    def run(ctx: typer.Context, **values: Any) -> None:
        own = Settings(**{name: values.pop(name) for name in SHARED})
        settings = own.over(ctx.obj or Settings())
        with reporting(settings.debug), settings.active():
            function(settings, **values)

    shown = [_parameter("ctx", typer.Context, inspect.Parameter.empty)]
    hints = typing.get_type_hints(function, include_extras=True)
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        shown.append(_parameter(parameter.name, hints[parameter.name], parameter.default))
    shown += [_parameter(name, hint, default) for name, (hint, default) in SHARED.items()]
    del run.__wrapped__  # its signature is another one
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _parameter(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


@contextlib.contextmanager
def reporting(debug: bool) -> Iterator[None]:
    """Within the block errors made on purpose end the program with a line, and exit code 2."""
    from ember_ml._core.errors import EmberError

    try:
        yield
    except BrokenPipeError:  # nobody reads any more, which is no error
        raise
    except (EmberError, OSError) as error:
        if debug:
            import traceback

            typer.echo(traceback.format_exc(), err=True)
        typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
        typer.echo(_message(error), err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        raise typer.Exit(130) from None


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
