"""`ember generate`: continue a prompt with a language model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.text_encoders import TextEncoder
    from ember_ml.nn.models import Generator


def generate(
    settings: Settings,
    checkpoint: Annotated[
        Path, typer.Argument(help="Folder of a checkpoint or of a training run.")
    ],
    prompt: Annotated[str | None, typer.Option(help="Text to continue.")] = None,
    tokens: Annotated[
        str | None, typer.Option(metavar="1,2,3", help="Token ids to continue, instead of text.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Number of tokens to add.")] = 200,
    temperature: Annotated[
        float,
        typer.Option(min=0.0, help="Sampling temperature; 0 takes the most likely token."),
    ] = 0.8,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Sample from the k most likely tokens.")
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Sample from the most likely tokens of total mass p."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a prompt, token by token."""
    folder = find_checkpoint(checkpoint)
    model = _load(folder)
    encoder = _encoder(folder)
    prompt_ids = _prompt_ids(prompt, tokens, encoder)
    stream = model.stream(
        prompt_ids,
        max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=settings.seed,
    )
    ids = (int(token[0]) for token in stream)
    if as_json:
        _write_json(prompt_ids, list(ids), encoder)
    else:
        _print_stream(prompt_ids, ids, encoder)


def find_checkpoint(path: Path) -> Path:
    """Return the folder of a checkpoint: the path, or `last` in the folder of a training run."""
    from ember_ml._core.errors import ArgumentError
    from ember_ml._core.folders import holds

    for place in (path, path / "last"):
        if holds(place, "config.json"):
            return place
    raise ArgumentError(
        f"{path} is not a checkpoint: neither it nor its subfolder last contains a config.json"
    )


def _load(folder: Path) -> Generator:
    import ember_ml
    from ember_ml._core.errors import ArgumentTypeError
    from ember_ml.nn.models import Generator

    model = ember_ml.load(folder)
    if not isinstance(model, Generator):
        raise ArgumentTypeError(f"{folder} holds a {type(model).__name__}, not a language model")
    return model


def _encoder(folder: Path) -> TextEncoder | None:
    from ember_ml.cli.text_encoders import read_encoder

    return read_encoder(folder) or read_encoder(folder.parent)


def _prompt_ids(text: str | None, tokens: str | None, encoder: TextEncoder | None) -> list[int]:
    from ember_ml._core.errors import ArgumentError
    from ember_ml.cli.text_encoders import default_prompt, encode

    if text is not None and tokens is not None:
        raise ArgumentError("pass --prompt or --tokens, not both")
    if tokens is not None:
        try:
            return [int(token) for token in tokens.replace(",", " ").split()]
        except ValueError:
            raise ArgumentError(
                f"--tokens must be integers such as 1,2,3, not {tokens!r}"
            ) from None
    if encoder is None:
        raise ArgumentError(
            "the checkpoint has no vocab.json or tokenizer.json, so it cannot encode text; use "
            "--tokens, such as --tokens 1,2,3"
        )
    return encode(encoder, text, "--prompt") if text else default_prompt(encoder)


def _write_json(prompt_ids: list[int], ids: list[int], encoder: TextEncoder | None) -> None:
    from ember_ml.cli.text_encoders import decode_stream

    data: dict[str, object] = {"prompt_tokens": prompt_ids, "tokens": ids}
    if encoder is not None:
        text = "".join(decode_stream(encoder, ids, prompt_ids))
        data |= {"prompt": encoder.decode(prompt_ids), "text": text}
    output.write_json(data)


def _print_stream(prompt_ids: list[int], ids: Iterator[int], encoder: TextEncoder | None) -> None:
    """Print the prompt, then each token as soon as it is sampled."""
    from ember_ml.cli.text_encoders import decode_stream

    if encoder is not None:
        typer.echo(encoder.decode(prompt_ids).lstrip("\n"), nl=False)
        for piece in decode_stream(encoder, ids, prompt_ids):
            typer.echo(piece, nl=False)
    else:
        typer.echo(" ".join(map(str, prompt_ids)), nl=False)
        for token in ids:
            typer.echo(f" {token}", nl=False)
    typer.echo()
