"""`ember generate`: a language model goes on with a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.text import Vocabulary


def generate(
    settings: Settings,
    checkpoint: Annotated[
        Path, typer.Argument(help="A checkpoint's folder, or the folder of a training.")
    ],
    prompt: Annotated[str | None, typer.Option(help="Text to go on with.")] = None,
    tokens: Annotated[
        str | None, typer.Option(metavar="1,2,3", help="Tokens to go on with, in place of text.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="How many to add.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0 takes the likeliest; 1 draws as the model says.")
    ] = 0.8,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Draw from so many of the likeliest.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Draw from the likeliest of this sum.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a prompt, token by token."""
    folder = find_checkpoint(checkpoint)
    model = _load(folder)
    vocabulary = _vocabulary(folder)
    given = _prompt(prompt, tokens, vocabulary)
    new = model.stream(
        given,
        max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=settings.seed,
    )
    ids = (int(token[0]) for token in new)
    if as_json:
        _write(given, list(ids), vocabulary)
    else:
        _stream(given, ids, vocabulary)


def find_checkpoint(path: Path) -> Path:
    """The folder of a checkpoint: this one, or the last one of a training's folder."""
    from ember_ml._core.errors import ArgumentError
    from ember_ml._core.folders import find_folder

    for place in (path, path / "last"):
        found = find_folder(place)
        if (found / "config.json").is_file():
            return found
    raise ArgumentError(
        f"{path} is no checkpoint: there is no config.json in it, nor in its folder last"
    )


def _load(folder: Path) -> Any:
    import ember_ml
    from ember_ml._core.errors import ArgumentTypeError
    from ember_ml.nn.models import Generator

    model = ember_ml.load(folder)
    if not isinstance(model, Generator):
        raise ArgumentTypeError(f"{folder} holds a {type(model).__name__}, not a language model")
    return model


def _vocabulary(folder: Path) -> Vocabulary | None:
    from ember_ml.cli.text import Vocabulary

    for place in (folder / "vocab.json", folder.parent / "vocab.json"):
        if place.is_file():
            return Vocabulary.read(place)
    return None


def _prompt(text: str | None, tokens: str | None, vocabulary: Vocabulary | None) -> list[int]:
    from ember_ml._core.errors import ArgumentError

    if text is not None and tokens is not None:
        raise ArgumentError("give --prompt or --tokens, not both")
    if tokens is not None:
        try:
            return [int(token) for token in tokens.replace(",", " ").split()]
        except ValueError:
            raise ArgumentError(f"--tokens are numbers such as 1,2,3, not {tokens!r}") from None
    if vocabulary is None:
        raise ArgumentError(
            "there is no vocab.json with the checkpoint, so text means nothing to it; give "
            "--tokens, such as --tokens 1,2,3"
        )
    usual = "\n" if "\n" in vocabulary.tokens else vocabulary.tokens[0]
    return vocabulary.encode(text or usual, "--prompt")


def _write(given: list[int], ids: list[int], vocabulary: Vocabulary | None) -> None:
    data: dict[str, Any] = {"prompt_tokens": given, "tokens": ids}
    if vocabulary is not None:
        data |= {"prompt": vocabulary.decode(given), "text": vocabulary.decode(ids)}
    output.write_json(data)


def _stream(given: list[int], ids: Iterator[int], vocabulary: Vocabulary | None) -> None:
    """Write the prompt, and each token as soon as it is known."""
    if vocabulary is not None:
        typer.echo(vocabulary.decode(given).lstrip("\n"), nl=False)
        for token in ids:
            typer.echo(vocabulary.decode([token]), nl=False)
    else:
        typer.echo(" ".join(map(str, given)), nl=False)
        for token in ids:
            typer.echo(f" {token}", nl=False)
    typer.echo()
