"""Text in and out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError
from ember_ml.nn.models.decoding.tokenizers import TextTokenizer

if TYPE_CHECKING:
    from ember_ml.nn.models.generation import Generator


def generate(
    model: Generator, texts: Sequence[str], max_new_tokens: int, options: Mapping[str, Any]
) -> list[str]:
    """Return the texts that follow prompts.

    Args:
        model: Model with a tokenizer.
        texts: Prompts.
        max_new_tokens: Maximum number of tokens to add to each.
        options: Options of `Generator.complete`.
    """
    tokenizer = _tokenizer(model)
    if not texts:
        return []
    prompts = [encode(tokenizer, text, f"prompt {at}") for at, text in enumerate(texts)]
    result = model.complete(prompts, max_new_tokens, **with_eos(tokenizer, options))
    stops = _strings(options)
    pieces = [
        tokenizer.decode_stream(tokens, after=prompt)
        for prompt, tokens in zip(result.prompts, result.tokens, strict=True)
    ]
    return ["".join(cut(stream, stops)) for stream in pieces]


def stream(
    model: Generator, text: str, max_new_tokens: int, options: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the text that follows a prompt, piece by piece.

    Args:
        model: Model with a tokenizer.
        text: Prompt.
        max_new_tokens: Maximum number of tokens to add.
        options: Options of `Generator.stream`.
    """
    tokenizer = _tokenizer(model)
    prompt = encode(tokenizer, text, "the prompt")
    tokens = model.stream(prompt, max_new_tokens, **with_eos(tokenizer, options))
    ids = (int(token[0]) for token in tokens)
    return cut(tokenizer.decode_stream(ids, after=prompt), _strings(options))


def cut(pieces: Iterable[str], stops: Sequence[str]) -> Iterator[str]:
    """Yield text until the first stop string, which is left out.

    A piece that may be the beginning of a stop string is held back.

    Args:
        pieces: Text, piece by piece.
        stops: Stop strings.
    """
    pending = ""
    for piece in pieces:
        pending += piece
        places = [pending.find(stop) for stop in stops if stop in pending]
        if places:
            pending = pending[: min(places)]
            break
        held = max((overlap(pending, stop) for stop in stops), default=0)
        ready, pending = pending[: len(pending) - held], pending[len(pending) - held :]
        if ready:
            yield ready
    if pending:
        yield pending


def overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text with which a stop string begins."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)


def encode(tokenizer: TextTokenizer, text: str, what: str) -> list[int]:
    """Return the tokens of a prompt.

    Args:
        tokenizer: The tokenizer.
        text: The prompt.
        what: Name of the prompt in errors.
    """
    tokens = tokenizer.encode(text)
    if not tokens:
        raise ArgumentError(f"generate_text: {what} has no tokens: {text!r:.60}")
    return tokens


def with_eos(tokenizer: TextTokenizer, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with the tokenizer's token for the end of a text as `eos`, if none is given.

    Args:
        tokenizer: The tokenizer.
        options: Options of generation.
    """
    if "eos" in options or tokenizer.eos_id is None:
        return dict(options)
    return {**options, "eos": tokenizer.eos_id}


def _strings(options: Mapping[str, Any]) -> list[str]:
    stop = options.get("stop", ())
    return [stop] if isinstance(stop, str) else list(stop)


def _tokenizer(model: Generator) -> TextTokenizer:
    if model.tokenizer is None:
        raise ArgumentError(
            f"{type(model).__name__}.generate_text: the model has no tokenizer; assign "
            "model.tokenizer, such as data.text.Tokenizer.load(folder), or pass tokens to generate"
        )
    return model.tokenizer
