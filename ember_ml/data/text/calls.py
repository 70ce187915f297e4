"""Calls of the package `tokenizers`, with errors of our own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ember_ml._core.errors import ArgumentError, ArgumentTypeError, EmberError
from ember_ml._core.requirements import import_optional

if TYPE_CHECKING:
    import tokenizers


class TokenizerError(EmberError, ValueError):
    """Raised for a tokenizer that cannot be read, or a text that it cannot encode."""


@contextlib.contextmanager
def own_errors(problem: str) -> Iterator[None]:
    """Convert errors of the package, which have no class of their own, to a TokenizerError.

    Args:
        problem: Start of the message.
    """
    try:
        yield
    except (EmberError, OSError):
        raise
    except Exception as error:
        raise TokenizerError(f"{problem}: {error!s:.500}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust code; not an Exception
            raise
        raise TokenizerError(f"{problem}: {error!s:.500}") from None


def parse(content: str) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Return a tokenizer without padding and truncation, and its parsed content.

    Args:
        content: Content of a `tokenizer.json`.

    Raises:
        TokenizerError: If the content is damaged.
    """
    package = import_optional("tokenizers", "data.text.Tokenizer")
    with own_errors("it is damaged"):
        data = json.loads(content)
        if not isinstance(data, dict) or not isinstance(data.get("model"), dict):
            raise TokenizerError("it must hold a JSON object with a model")
        tokenizer = package.Tokenizer.from_str(content)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode("")  # some damage shows only now
    return tokenizer, data


def check_text(text: object, at: int) -> str:
    """Return a text; raise an error if it is not one.

    Args:
        text: Value to check.
        at: Position of the text, for errors.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"Tokenizer: text {at} must be a str, not {text!r:.60}")
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"Tokenizer: text {at} has half of a surrogate pair at {error.start}, which is not a "
            "character"
        ) from None
    return text
