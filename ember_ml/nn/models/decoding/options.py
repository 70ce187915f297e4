"""Options of generation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ember_ml._core.errors import ArgumentError, ArgumentTypeError
from ember_ml.nn.models.sampling import check_number, check_sampling
from ember_ml.registry.base import close_matches

if TYPE_CHECKING:
    from ember_ml.nn.models.generation import Generator

Tokens = int | Iterable[int]
"""One token or several."""


class TensorOptions(TypedDict, total=False):
    """Options with which `generate` returns a tensor for prompts of equal length."""

    temperature: float
    """0 takes the most likely token (default); 1 samples from the model's distribution; values
    below 1 prefer likely tokens."""
    top_k: int | None
    """Sample from this number of most likely tokens only."""
    top_p: float | None
    """Sample from the most likely tokens whose probabilities add up to this only."""
    min_p: float | None
    """Sample only from tokens with at least this fraction of the highest probability."""
    repetition_penalty: float
    """Divide positive logits of tokens in the prompt or the result by this, and multiply negative
    ones. Default: 1."""
    presence_penalty: float
    """Subtract this from the logits of tokens that were generated. Default: 0."""
    frequency_penalty: float
    """Subtract this from the logits of a token each time it was generated. Default: 0."""
    logit_bias: Mapping[int, float]
    """Token -> number added to its logit; -inf excludes the token."""
    eos: Tokens | None
    """Tokens that end a sequence. The rest of a row of a tensor repeats the token."""
    stop_tokens: Tokens
    """Same as `eos`; tokens of both end a sequence."""
    min_new_tokens: int
    """Number of tokens before which no stop token is generated. Default: 0."""
    seed: int | Sequence[int] | None
    """Random seed, or one for each row. The same seed samples the same tokens on every backend."""
    cache: bool
    """Whether to generate step by step from a state or KV cache (default). False recomputes the
    whole sequence for each token."""
    compile: bool | None
    """Whether to compile the step, for a model in inference mode. torch's compiler takes up to a
    minute, for each batch size and up to four times for each doubling of the length. Default: only
    for long generations on frameworks that compile quickly (MLX)."""
    num_beams: int
    """Number of beams of beam search. Default: 1, without search."""
    length_penalty: float
    """Exponent of the length by which scores of beams are divided. Default: 1."""
    early_stopping: bool | Literal["never"]
    """When beam search ends: True as soon as there are `num_beams` complete sequences; False
    (default) if a better one is unlikely; "never" if there cannot be a better one."""
    draft: Generator | None
    """Smaller model with the same vocabulary that proposes tokens: speculative decoding."""
    draft_tokens: int
    """Number of tokens that the draft model proposes at once. Default: 4."""


class GenerationOptions(TensorOptions, total=False):
    """Options of `generate`, `complete`, `stream`, `generate_text` and `stream_text`."""

    stop: str | Sequence[str]
    """Strings that end a sequence, for models with a tokenizer."""
    allowed: Iterable[Sequence[int]] | None
    """Allowed continuations. The result is always one of them."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Checked options of a call; see `GenerationOptions`."""

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] | None = None
    eos: Tokens | None = ()
    stop_tokens: Tokens = ()
    stop: str | Sequence[str] = ()
    min_new_tokens: int = 0
    allowed: Iterable[Sequence[int]] | None = None
    seed: int | Sequence[int] | None = None
    cache: bool = True
    compile: bool | None = None
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    draft: Generator | None = None
    draft_tokens: int = 4

    @classmethod
    def of(cls, options: Mapping[str, Any], vocab_size: int) -> Options:
        """Return the options of a call, or raise an error that names the wrong one.

        Args:
            options: Keyword arguments of the call.
            vocab_size: Number of tokens in the vocabulary.
        """
        names = [field.name for field in fields(cls)]
        for name in options:
            if name not in names:
                hint = close_matches(name, names) or f"; options are {', '.join(names)}"
                raise ArgumentTypeError(f"generate: there is no option {name!r}{hint}")
        checked = cls(**options)
        checked._check()
        checked._check_tokens(vocab_size)
        return checked

    @property
    def stop_ids(self) -> list[int]:
        """Tokens that end a sequence, in ascending order."""
        return sorted({*_ids("eos", self.eos), *_ids("stop_tokens", self.stop_tokens)})

    @property
    def stop_strings(self) -> list[str]:
        """Strings that end a sequence."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop)

    def _check(self) -> None:
        check_sampling(self.temperature, self.top_k, self.top_p, self.min_p)
        _require("repetition_penalty", self.repetition_penalty, "above 0", above=0.0)
        for name in ("presence_penalty", "frequency_penalty"):
            _require(name, getattr(self, name), "a finite number")
        _require("length_penalty", self.length_penalty, "between -50 and 50", above=-50, below=50)
        for name, least in (("min_new_tokens", 0), ("num_beams", 1), ("draft_tokens", 1)):
            if integer(name, getattr(self, name)) < least:
                raise ArgumentError(
                    f"generate: {name}={getattr(self, name)} must be at least {least}"
                )
        if self.early_stopping not in (True, False, "never"):
            raise ArgumentError(
                f'generate: early_stopping must be True, False or "never", not '
                f"{self.early_stopping!r:.40}"
            )
        if not all(isinstance(each, str) and each for each in self.stop_strings):
            raise ArgumentError(f"generate: stop={self.stop!r:.60} must be strings, not empty")
        if self.num_beams > 1 and self.temperature != 0:
            raise ArgumentError(
                f"generate: num_beams={self.num_beams} is a search without sampling; pass "
                f"temperature=0, not {self.temperature}"
            )
        if self.num_beams > 1 and self.draft is not None:
            raise ArgumentError("generate: pass num_beams or draft, not both")

    def _check_tokens(self, vocab_size: int) -> None:
        if not isinstance(self.logit_bias, Mapping | None):
            raise ArgumentTypeError(
                f"generate: logit_bias must map tokens to numbers, not {self.logit_bias!r:.60}"
            )
        biased = [] if self.logit_bias is None else list(self.logit_bias)
        for name, ids in (("eos", self.stop_ids), ("logit_bias", biased)):
            for token in ids:
                if not 0 <= integer(name, token) < vocab_size:
                    raise ArgumentError(
                        f"generate: {name} has the token {token}; the vocabulary has those from 0 "
                        f"to {vocab_size - 1}"
                    )
        for token, bias in (self.logit_bias or {}).items():
            check_number("logit_bias", bias)
            if not bias < math.inf:
                raise ArgumentError(
                    f"generate: logit_bias of token {token} must be a number below inf, not {bias}"
                )


def _ids(name: str, tokens: Tokens | None) -> list[int]:
    """Return tokens as a list."""
    if tokens is None:
        return []
    several = tokens if isinstance(tokens, Iterable) else (tokens,)
    return [integer(name, token) for token in several]


def integer(name: str, value: object) -> int:
    """Return an option as an integer, or raise an error that names it.

    Args:
        name: Name of the option.
        value: Its value.
    """
    try:
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"generate: {name} must be integers, not {value!r:.60}") from None


def _require(
    name: str, value: float, rule: str, above: float = -math.inf, below: float = math.inf
) -> None:
    """Raise an error unless a value is a number between bounds."""
    check_number(name, value)
    if not above < value < below:
        raise ArgumentError(f"generate: {name}={value} must be {rule}")
