"""`ember generate`: continue a prompt with a language model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ember_ml.cli import generate_options as flags
from ember_ml.cli import output
from ember_ml.cli.settings import JsonOption, Settings

if TYPE_CHECKING:
    from ember_ml.cli.text_encoders import TextEncoder
    from ember_ml.nn.models import Generation, Generator


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
    temperature: flags.Temperature = None,
    top_k: flags.TopK = None,
    top_p: flags.TopP = None,
    min_p: flags.MinP = None,
    repetition_penalty: flags.RepetitionPenalty = 1.0,
    presence_penalty: flags.PresencePenalty = 0.0,
    frequency_penalty: flags.FrequencyPenalty = 0.0,
    logit_bias: flags.LogitBias = None,
    eos: flags.Eos = None,
    stop: flags.Stop = None,
    min_new_tokens: flags.MinNewTokens = 0,
    choice: flags.Choice = None,
    num_samples: flags.NumSamples = 1,
    num_beams: flags.NumBeams = 1,
    length_penalty: flags.LengthPenalty = 1.0,
    early_stopping: flags.EarlyStopping = flags.Early.no,
    draft: flags.Draft = None,
    draft_tokens: flags.DraftTokens = 4,
    compile_step: flags.Compile = False,
    as_json: JsonOption = False,
) -> None:
    """Continue a prompt, token by token."""
    folder = find_checkpoint(checkpoint)
    model = _load(folder).eval()
    encoder = load_tokenizer(model, folder)
    model.tokenizer = encoder
    prompt_ids = _prompt_ids(prompt, tokens, encoder)
    is_search = num_beams > 1
    options: dict[str, Any] = {
        "temperature": (0.0 if is_search else 0.8) if temperature is None else temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "logit_bias": flags.parse_biases(logit_bias or ()),
        "eos": flags.stop_ids(eos, encoder),
        "stop": stop or (),
        "min_new_tokens": min_new_tokens,
        "allowed": flags.parse_choices(choice, encoder),
        "num_beams": num_beams,
        "length_penalty": length_penalty,
        "early_stopping": early_stopping.setting,
        "draft": None if draft is None else _load(find_checkpoint(draft)),
        "draft_tokens": draft_tokens,
        "compile": True if compile_step else None,
        "seed": settings.seed,
    }
    if not (as_json or is_search or num_samples > 1):
        stream = model.stream(prompt_ids, max_new_tokens, **options)
        _print_stream(prompt_ids, (int(token[0]) for token in stream), encoder, stop or ())
        return
    result = model.complete(
        prompt_ids, max_new_tokens, num_samples=num_samples, log_probs=as_json, **options
    )
    if as_json:
        _write_json(result, encoder, stop or ())
        return
    for ids in result.tokens:
        _print_stream(prompt_ids, iter(ids), encoder, stop or ())


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


def load_tokenizer(model: Generator, folder: Path) -> TextEncoder | None:
    """Return the tokenizer of the model, or the one next to it.

    Args:
        model: The model.
        folder: Its folder.
    """
    from ember_ml.cli.text_encoders import read_encoder
    from ember_ml.data.text import Tokenizer, Vocabulary

    if isinstance(model.tokenizer, (Tokenizer, Vocabulary)):
        return model.tokenizer
    return read_encoder(folder) or read_encoder(folder.parent)


def _prompt_ids(text: str | None, tokens: str | None, encoder: TextEncoder | None) -> list[int]:
    from ember_ml._core.errors import ArgumentError
    from ember_ml.cli.text_encoders import default_prompt, encode

    if text is not None and tokens is not None:
        raise ArgumentError("pass --prompt or --tokens, not both")
    if tokens is not None:
        return flags.parse_ids("--tokens", tokens)
    if encoder is None:
        raise ArgumentError(
            "the checkpoint has no vocab.json or tokenizer.json, so it cannot encode text; use "
            "--tokens, such as --tokens 1,2,3"
        )
    return encode(encoder, text, "--prompt") if text else default_prompt(encoder)


def _write_json(result: Generation, encoder: TextEncoder | None, stop: Sequence[str]) -> None:
    """Write the prompt and the result; several samples as a list."""
    prompt_ids = result.prompts[0]
    data: dict[str, object] = {"prompt_tokens": prompt_ids}
    if encoder is not None:
        data["prompt"] = encoder.decode(prompt_ids)
    samples = []
    for at, ids in enumerate(result.tokens):
        sample: dict[str, object] = {"tokens": ids, "finish_reason": result.finish_reason[at]}
        if result.log_probs is not None:
            sample["log_probs"] = result.log_probs[at]
        if result.scores is not None:
            sample["score"] = result.scores[at]
        if encoder is not None:
            sample["text"] = "".join(_text(prompt_ids, iter(ids), encoder, stop))
        samples.append(sample)
    output.write_json(data | (samples[0] if len(samples) == 1 else {"samples": samples}))


def _text(
    prompt_ids: list[int], ids: Iterator[int], encoder: TextEncoder, stop: Sequence[str]
) -> Iterator[str]:
    """Yield the text of new tokens until a stop string."""
    from ember_ml.nn.models.decoding.text import cut

    return cut(encoder.decode_stream(ids, after=prompt_ids), stop)


def _print_stream(
    prompt_ids: list[int],
    ids: Iterator[int],
    encoder: TextEncoder | None,
    stop: Sequence[str],
) -> None:
    """Print the prompt, then each token as soon as it is sampled."""
    if encoder is not None:
        typer.echo(encoder.decode(prompt_ids).lstrip("\n"), nl=False)
        for piece in _text(prompt_ids, ids, encoder, stop):
            typer.echo(piece, nl=False)
    else:
        typer.echo(" ".join(map(str, prompt_ids)), nl=False)
        for token in ids:
            typer.echo(f" {token}", nl=False)
    typer.echo()
