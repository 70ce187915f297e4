"""Completions of a language model: from the body of a request to its sequences."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from ember_ml._core.errors import EmberError
from ember_ml.nn.models import Generator
from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.decoding.stopping import Stopping
from ember_ml.nn.models.sampling import row_seed
from ember_ml.serving.api_errors import invalid
from ember_ml.serving.chat import ChatTemplate, ChatTemplateError
from ember_ml.serving.engine import Engine
from ember_ml.serving.formats import ChatFormat, CompletionFormat, Format
from ember_ml.serving.jobs import Choice, Job
from ember_ml.serving.limits import Limits
from ember_ml.serving.schemas import ChatBody, CompletionBody, GenerationBody
from ember_ml.serving.sequences import Mailbox, Sequence

SAMPLING = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
"""Fields of a body that are options of `generate` of the same name."""


class LanguageService:
    """Completions and chat completions of one language model.

    Args:
        model: The model, with its tokenizer.
        name: Name of the model in responses.
        limits: Limits of the engine and of requests.
        template: Chat template; without it there are no chat completions.
        new_seed: Source of the seeds of requests without one. Default: the operating system.
    """

    def __init__(
        self,
        model: Generator,
        name: str,
        limits: Limits,
        template: ChatTemplate | None = None,
        new_seed: Callable[[], int] = lambda: secrets.randbits(62),
    ) -> None:
        self.name = name
        self.limits = limits
        self.tokenizer = model.tokenizer
        self.vocab_size = model.vocab_size
        self.engine = Engine(model, limits)
        self.template = template if self.tokenizer is not None else None
        self._new_seed = new_seed

    @property
    def has_chat(self) -> bool:
        """Whether there are chat completions."""
        return self.template is not None

    def completion(self, body: CompletionBody) -> tuple[Job, Format]:
        """Return the sequences of a request for completions, and the format of the response.

        Args:
            body: Body of the request.
        """
        if body.echo and body.logprobs is not None:
            raise invalid("echo: there are no log-probabilities of a prompt; pass one of "
                          "echo and logprobs", "echo")  # fmt: skip
        prompts = self._prompts(body.prompt)
        job = self._job(body, prompts, body.max_tokens or 16, body.logprobs, body.echo)
        form = CompletionFormat(
            self.name, self.tokenizer, body.logprobs is not None, body.return_token_ids
        )
        return job, form

    def chat(self, body: ChatBody) -> tuple[Job, Format]:
        """Return the sequences of a request for chat completions, and the format of the response.

        Args:
            body: Body of the request.
        """
        assert self.template is not None
        if body.top_logprobs is not None and not body.logprobs:
            raise invalid("top_logprobs: pass logprobs=true with it", "top_logprobs")
        messages = [{"role": each.role, "content": each.text} for each in body.messages]
        try:
            prompt = self._encode(self.template.render(messages), "messages", special=False)
        except ChatTemplateError as error:
            raise invalid(str(error), "messages") from None
        room = self.engine.max_length - len(prompt)
        count = body.max_completion_tokens or body.max_tokens
        count = count or max(1, min(room, self.limits.max_tokens))
        log_probs = (body.top_logprobs or 0) if body.logprobs else None
        job = self._job(body, [prompt], count, log_probs)
        return job, ChatFormat(self.name, self.tokenizer, body.logprobs, body.return_token_ids)

    def _prompts(self, prompt: Any) -> list[list[int]]:
        """Return the tokens of the prompts of a body."""
        several = (
            prompt if isinstance(prompt, list) and not isinstance(prompt[0], int) else [prompt]
        )
        result = []
        for at, each in enumerate(several):
            place = "prompt" if len(several) == 1 else f"prompt {at}"
            tokens = self._encode(each, place) if isinstance(each, str) else each
            self._check_tokens(tokens, place)
            result.append(tokens)
        return result

    def _encode(self, text: str, place: str, special: bool = True) -> list[int]:
        if self.tokenizer is None:
            raise invalid(
                f"{place}: the model has no tokenizer; pass token ids, such as [1, 2, 3]", "prompt"
            )
        try:
            plain: dict[str, Any] = {} if special else {"add_special_tokens": False}
            tokens = self.tokenizer.encode(text, **plain)
        except (EmberError, UnicodeError) as error:
            raise invalid(f"{place}: {error}", place.partition(" ")[0]) from None
        if not tokens:
            raise invalid(f"{place}: the text has no tokens", place.partition(" ")[0])
        return tokens

    def _check_tokens(self, tokens: list[int], place: str) -> None:
        low, high = min(tokens), max(tokens)
        if low < 0 or high >= self.vocab_size:
            wrong = low if low < 0 else high
            raise invalid(
                f"{place}: there is no token {wrong}; the vocabulary has those from 0 to "
                f"{self.vocab_size - 1}",
                "prompt",
            )

    def _check_length(self, prompt: list[int], count: int) -> None:
        if count > self.limits.max_tokens:
            raise invalid(
                f"max_tokens={count} exceeds the limit of this server, {self.limits.max_tokens}",
                "max_tokens",
            )
        limit = self.engine.max_length
        if len(prompt) + count > limit:
            raise invalid(
                f"the limit of this model is {limit} tokens; the request has {len(prompt)} in the "
                f"prompt and asks for {count} new ones (max_tokens)",
                "max_tokens" if len(prompt) < limit else "prompt",
                "context_length_exceeded",
            )
        cached = self.limits.max_cached_tokens
        if cached is not None and len(prompt) + count > cached:
            raise invalid(
                f"the limit of this server is {cached} tokens in memory; the request needs "
                f"{len(prompt) + count}",
                "max_tokens",
            )

    def _job(
        self,
        body: GenerationBody,
        prompts: list[list[int]],
        count: int,
        log_probs: int | None,
        echo: bool = False,
    ) -> Job:
        """Return the sequences of a request."""
        if len(prompts) * body.n > self.limits.places:
            raise invalid(
                f"n={body.n} for {len(prompts)} prompts exceeds the limit of this server, "
                f"{self.limits.places} sequences",
                "n",
            )
        options, stopping = self._options(body)
        if options.min_new_tokens > count:
            raise invalid(f"min_tokens={body.min_tokens} exceeds max_tokens={count}", "min_tokens")
        seed = self._new_seed() if body.seed is None else body.seed
        mailbox, deadline = Mailbox(), time.monotonic() + self.limits.timeout
        choices: list[Choice] = []
        for prompt in prompts:
            self._check_length(prompt, count)
            prefix = self._text(prompt) if echo else ""
            for _ in range(body.n):
                at = len(choices)
                sequence = Sequence(
                    prompt, count, options, stopping, row_seed(seed, at), mailbox, deadline,
                    log_probs, at,
                )  # fmt: skip
                choices.append(Choice(sequence, self.tokenizer, prefix))
        return Job(self.engine, choices, mailbox, deadline)

    def _text(self, prompt: list[int]) -> str:
        """Return the text of a prompt that is echoed."""
        if self.tokenizer is None:
            return " ".join(map(str, prompt)) + " "
        return self.tokenizer.decode(prompt)

    def _options(self, body: GenerationBody) -> tuple[Options, Stopping]:
        given: dict[str, Any] = {name: getattr(body, name) for name in SAMPLING}
        stop = body.stop or []
        given["stop"] = [stop] if isinstance(stop, str) else stop
        given["logit_bias"] = _biases(body.logit_bias or {})
        given["min_new_tokens"] = body.min_tokens
        if self.tokenizer is not None and not body.ignore_eos:
            given["eos"] = self.tokenizer.eos_id
        try:
            options = Options.of(given, self.vocab_size)
            return options, Stopping(options, self.vocab_size, self.tokenizer)
        except EmberError as error:
            message = str(error).removeprefix("generate: ")
            field = next((name for name in given if message.startswith(name)), None)
            raise invalid(message, field) from None


def _biases(biases: dict[str, float]) -> dict[int, float]:
    """Return biases by token; JSON has texts as keys."""
    try:
        return {int(token): value for token, value in biases.items()}
    except ValueError:
        raise invalid("logit_bias: keys must be token ids", "logit_bias") from None
