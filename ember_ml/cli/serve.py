"""`ember serve`: serve a model over HTTP."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.generate import find_checkpoint, load_tokenizer
from ember_ml.cli.settings import Settings

if TYPE_CHECKING:
    from ember_ml.nn import Module
    from ember_ml.serving import Limits
    from ember_ml.serving.app import Service

ACCESS, LIMITS = "Address and access", "Limits"


def serve(
    settings: Settings,
    folder: Annotated[
        Path, typer.Argument(help="Folder of a checkpoint, a training run or a pipeline.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to bind to.", rich_help_panel=ACCESS)
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port; 0 takes a free one.", rich_help_panel=ACCESS),
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="EMBER_SERVE_TOKEN",
            help="Bearer token that clients must send.",
            show_envvar=True,
            rich_help_panel=ACCESS,
        ),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Allow another host without a token.", rich_help_panel=ACCESS
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the model in requests.",
            show_default="that of the folder",
            rich_help_panel=ACCESS,
        ),
    ] = None,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Sequences that run at once.", rich_help_panel=LIMITS)
    ] = 32,
    queue: Annotated[
        int, typer.Option(min=0, help="Sequences that wait.", rich_help_panel=LIMITS)
    ] = 64,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="New tokens of a sequence.", rich_help_panel=LIMITS)
    ] = 1024,
    max_length: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Tokens of a prompt and its completion.",
            show_default="that of the model, or 4096",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    max_cached_tokens: Annotated[
        int | None,
        typer.Option(min=2, help="Tokens in memory, padding included.", rich_help_panel=LIMITS),
    ] = None,
    prefill_chunk: Annotated[
        int,
        typer.Option(min=1, help="Tokens of a prompt between two steps.", rich_help_panel=LIMITS),
    ] = 256,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds of a request.", rich_help_panel=LIMITS)
    ] = 120.0,
    body_bytes: Annotated[
        int, typer.Option(min=1, help="Bytes of the body of a request.", rich_help_panel=LIMITS)
    ] = 4 << 20,
    grace: Annotated[
        float,
        typer.Option(
            min=1.0, help="Seconds for running requests after SIGTERM.", rich_help_panel=LIMITS
        ),
    ] = 10.0,
) -> None:
    """Serve a model over HTTP: completions of a language model, predictions of others."""
    _check_installed()
    import ember_ml
    from ember_ml.serving import Limits
    from ember_ml.serving.server import serve as run

    place = find_checkpoint(folder)
    limits = Limits(
        max_batch, queue, max_tokens, max_length, max_cached_tokens, prefill_chunk, timeout,
        body_bytes,
    )  # fmt: skip
    service = _service(
        ember_ml.load(place), place, name or folder.resolve().name, limits, settings.seed
    )

    def announce(address: str) -> None:
        output.say(f"serving {service.name} on {address} ({_summary(service)})")

    run(
        service,
        host=host,
        port=port,
        token=token,
        insecure=insecure,
        grace=grace,
        announce=announce,
    )


def _check_installed() -> None:
    """Raise an error with the command that installs what is missing."""
    from importlib.util import find_spec

    from ember_ml._core.errors import ArgumentError
    from ember_ml._core.requirements import REQUIREMENTS

    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        command = " ".join(["pip install", *(f"'{REQUIREMENTS[name]}'" for name in missing)])
        raise ArgumentError(
            f"ember serve needs {' and '.join(missing)}; install what is missing with: {command}"
        )


def _service(model: Module, folder: Path, name: str, limits: Limits, seed: int | None) -> Service:
    """Return what serves a model."""
    from ember_ml.nn.models import Generator
    from ember_ml.serving.chat import ChatTemplate
    from ember_ml.serving.language_service import LanguageService
    from ember_ml.serving.predict_service import PredictService

    model.eval()
    if not isinstance(model, Generator):
        return PredictService(model, name, limits)
    model.tokenizer = load_tokenizer(model, folder)
    template = ChatTemplate.find(folder) or ChatTemplate.find(folder.parent)
    if seed is None:
        return LanguageService(model, name, limits, template)
    source = random.Random(seed)
    return LanguageService(model, name, limits, template, lambda: source.getrandbits(62))


def _summary(service: Service) -> str:
    """Return the limits and the endpoint, for the line at the start."""
    from ember_ml.serving.language_service import LanguageService

    limits = service.limits
    parts = [f"{limits.max_batch} at once", f"{limits.queue} waiting", f"{limits.timeout:g} s each"]
    if isinstance(service, LanguageService):
        length = service.engine.max_length
        parts[2:2] = [f"{limits.max_tokens} new tokens", f"{length} tokens in all"]
        parts.append("chat" if service.has_chat else "no chat template")
        if service.tokenizer is None:
            parts.append("no tokenizer: token ids only")
    return "; ".join(parts)
