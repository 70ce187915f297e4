"""Responses in the shape of OpenAI's API."""

from __future__ import annotations

import time
import uuid
from typing import Any

from ember_ml.nn.models.decoding.tokenizers import TextTokenizer
from ember_ml.serving.jobs import Choice, Delta
from ember_ml.serving.sequences import NewToken
from ember_ml.serving.text import token_text


class Format:
    """Shape of the responses of an endpoint.

    Args:
        model: Name of the model.
        tokenizer: Tokenizer of the model, if there is one.
        log_probs: Whether to report log-probabilities.
        token_ids: Whether to report token ids.
    """

    prefix = ""
    kind = ""
    chunk_kind = ""

    def __init__(
        self, model: str, tokenizer: TextTokenizer | None, log_probs: bool, token_ids: bool
    ) -> None:
        self.tokenizer = tokenizer
        self.log_probs = log_probs
        self.token_ids = token_ids
        self.head = {
            "id": f"{self.prefix}-{uuid.uuid4().hex}",
            "object": self.kind,
            "created": int(time.time()),
            "model": model,
        }
        self.chunk_head = {**self.head, "object": self.chunk_kind}

    def chunk(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        """Return a chunk of a stream."""
        content = self.part(choice, delta)
        choice.is_first = False
        return {**self.chunk_head, "choices": [self._choice(choice, delta, content)]}

    def last_chunk(self, usage: dict[str, int]) -> dict[str, Any]:
        """Return the chunk with the numbers of tokens."""
        return {**self.chunk_head, "choices": [], "usage": usage}

    def whole(self, parts: list[tuple[Choice, Delta]], usage: dict[str, int]) -> dict[str, Any]:
        """Return a response that is not streamed."""
        choices = [
            self._choice(choice, delta, self.content(delta))
            for choice, delta in sorted(parts, key=lambda part: part[0].index)
        ]
        return {**self.head, "choices": choices, "usage": usage}

    def _choice(self, choice: Choice, delta: Delta, content: dict[str, Any]) -> dict[str, Any]:
        result = {
            "index": choice.index,
            **content,
            "logprobs": self.log_probs_of(delta) if self.log_probs else None,
            "finish_reason": delta.finish_reason,
        }
        if self.token_ids:
            result["token_ids"] = [each.token for each in delta.tokens]
        return result

    def part(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        """Return the text of a choice in a chunk."""
        raise NotImplementedError

    def content(self, delta: Delta) -> dict[str, Any]:
        """Return the text of a choice in a response that is not streamed."""
        raise NotImplementedError

    def log_probs_of(self, delta: Delta) -> dict[str, Any]:
        """Return the log-probabilities of the tokens."""
        raise NotImplementedError

    def text(self, token: int) -> str:
        """Return the text of one token."""
        return token_text(self.tokenizer, token)


class CompletionFormat(Format):
    """Responses of `/v1/completions`."""

    prefix, kind, chunk_kind = "cmpl", "text_completion", "text_completion"

    def part(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        """Return the text of a choice in a chunk."""
        return {"text": delta.text}

    def content(self, delta: Delta) -> dict[str, Any]:
        """Return the text of a choice."""
        return {"text": delta.text}

    def log_probs_of(self, delta: Delta) -> dict[str, Any]:
        """Return the log-probabilities of the tokens."""
        return {
            "tokens": [self.text(each.token) for each in delta.tokens],
            "token_logprobs": [each.log_prob for each in delta.tokens],
            "top_logprobs": [
                {self.text(token): value for token, value in each.top} for each in delta.tokens
            ],
            "text_offset": delta.offsets,
        }


class ChatFormat(Format):
    """Responses of `/v1/chat/completions`."""

    prefix, kind, chunk_kind = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def part(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        """Return the text of a choice in a chunk."""
        role = {"role": "assistant"} if choice.is_first else {}
        return {"delta": {**role, "content": delta.text}}

    def content(self, delta: Delta) -> dict[str, Any]:
        """Return the message of a choice."""
        return {"message": {"role": "assistant", "content": delta.text}}

    def log_probs_of(self, delta: Delta) -> dict[str, Any]:
        """Return the log-probabilities of the tokens."""
        return {"content": [self._token(each) for each in delta.tokens], "refusal": None}

    def _token(self, each: NewToken) -> dict[str, Any]:
        top = [self._entry(token, value) for token, value in each.top]
        return {**self._entry(each.token, each.log_prob), "top_logprobs": top}

    def _entry(self, token: int, value: float | None) -> dict[str, Any]:
        text = self.text(token)
        return {"token": text, "logprob": value, "bytes": list(text.encode())}
