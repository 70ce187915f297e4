"""Options of `ember generate`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from ember_ml.cli.text_encoders import TextEncoder

SAMPLING = "Sampling"
STOPPING = "End of the text"
SEARCH = "Beam search and speculative decoding"


class Early(enum.StrEnum):
    """When beam search ends."""

    no = "no"
    yes = "yes"
    never = "never"

    @property
    def setting(self) -> bool | Literal["never"]:
        """Value of the option `early_stopping` of `generate`."""
        return "never" if self is Early.never else self is Early.yes


Temperature = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Sampling temperature; 0 takes the most likely token.",
        show_default="0.8; 0 with beams",
        rich_help_panel=SAMPLING,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(min=1, help="Sample from the k most likely tokens.", rich_help_panel=SAMPLING),
]
TopP = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Sample from the most likely tokens of total mass p.",
        rich_help_panel=SAMPLING,
    ),
]
MinP = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Sample from tokens with this fraction of the highest probability.",
        rich_help_panel=SAMPLING,
    ),
]
RepetitionPenalty = Annotated[
    float,
    typer.Option(
        help="Factor that makes tokens of the prompt and the result less likely.",
        rich_help_panel=SAMPLING,
    ),
]
PresencePenalty = Annotated[
    float,
    typer.Option(
        help="Number subtracted from the logits of generated tokens.", rich_help_panel=SAMPLING
    ),
]
FrequencyPenalty = Annotated[
    float,
    typer.Option(
        help="Number subtracted for each time that a token was generated.",
        rich_help_panel=SAMPLING,
    ),
]
LogitBias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TOKEN:BIAS",
        help="Number added to the logit of a token, such as 5:-2.5; repeatable.",
        rich_help_panel=SAMPLING,
    ),
]
NumSamples = Annotated[int, typer.Option(min=1, help="Number of texts.", rich_help_panel=SAMPLING)]
Choice = Annotated[
    list[str] | None,
    typer.Option(
        help="Allowed text (or token ids 1,2,3 without a tokenizer); repeatable.",
        rich_help_panel=SAMPLING,
    ),
]
Eos = Annotated[
    str | None,
    typer.Option(
        metavar="1,2,3",
        help="Token ids that end the text.",
        show_default="that of the tokenizer",
        rich_help_panel=STOPPING,
    ),
]
Stop = Annotated[
    list[str] | None,
    typer.Option(help="String that ends the text; repeatable.", rich_help_panel=STOPPING),
]
MinNewTokens = Annotated[
    int,
    typer.Option(min=0, help="Number of tokens before the end.", rich_help_panel=STOPPING),
]
NumBeams = Annotated[int, typer.Option(min=1, help="Number of beams.", rich_help_panel=SEARCH)]
LengthPenalty = Annotated[
    float,
    typer.Option(
        help="Exponent of the length that scores of beams are divided by.", rich_help_panel=SEARCH
    ),
]
EarlyStopping = Annotated[
    Early,
    typer.Option(
        help="End the search with the first complete beams; never searches on.",
        rich_help_panel=SEARCH,
    ),
]
Draft = Annotated[
    Path | None,
    typer.Option(help="Folder of a smaller model that proposes tokens.", rich_help_panel=SEARCH),
]
DraftTokens = Annotated[
    int, typer.Option(min=1, help="Number of proposed tokens.", rich_help_panel=SEARCH)
]


Compile = Annotated[
    bool,
    typer.Option(
        "--compile",
        help="Compile the decoding step first; torch takes up to a minute, then decodes faster.",
    ),
]


def parse_ids(option: str, value: str) -> list[int]:
    """Return token ids such as "1,2,3".

    Args:
        option: Name of the option, for errors.
        value: The ids.
    """
    from ember_ml._core.errors import ArgumentError

    try:
        return [int(token) for token in value.replace(",", " ").split()]
    except ValueError:
        raise ArgumentError(f"{option} must be integers such as 1,2,3, not {value!r}") from None


def parse_biases(values: Sequence[str]) -> dict[int, float]:
    """Return token -> bias of values such as "5:-2.5".

    Args:
        values: Values of --logit-bias.
    """
    from ember_ml._core.errors import ArgumentError

    biases = {}
    for value in values:
        token, _, bias = value.partition(":")
        try:
            biases[int(token)] = float(bias)
        except ValueError:
            raise ArgumentError(
                f"--logit-bias must be a token and a number such as 5:-2.5, not {value!r}"
            ) from None
    return biases


def parse_choices(
    values: Sequence[str] | None, encoder: TextEncoder | None
) -> list[list[int]] | None:
    """Return the token ids of allowed continuations.

    Args:
        values: Values of --choice.
        encoder: Tokenizer or vocabulary. Without one, the values are token ids.
    """
    from ember_ml.cli.text_encoders import encode

    if values is None:
        return None
    if encoder is None:
        return [parse_ids("--choice", value) for value in values]
    return [encode(encoder, value, "--choice") for value in values]


def stop_ids(value: str | None, encoder: TextEncoder | None) -> list[int]:
    """Return the tokens that end a text.

    Args:
        value: Value of --eos. Default: the token of the tokenizer, if it has one.
        encoder: Tokenizer or vocabulary.
    """
    if value is not None:
        return parse_ids("--eos", value)
    eos = None if encoder is None else encoder.eos_id
    return [] if eos is None else [eos]
