"""Text of tokens that arrive one by one."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml.nn.models.decoding.text import overlap
from ember_ml.nn.models.decoding.tokenizers import TextTokenizer


class TextStream:
    """Text of new tokens, complete characters only, until the first stop string.

    Without a tokenizer, the text is the token ids, separated by spaces.

    Args:
        tokenizer: Tokenizer of the model, if there is one.
        prompt: Tokens before the first one.
        stops: Stop strings, which are left out with all text after them.
    """

    def __init__(
        self, tokenizer: TextTokenizer | None, prompt: Sequence[int], stops: Sequence[str] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._context = list(prompt)
        self._pending: list[int] = []
        self._piece = ""
        self._stops = stops
        self._held = ""
        self._is_first = True
        self._is_cut = False

    def push(self, token: int) -> str:
        """Return the text that a token adds.

        Args:
            token: The token.
        """
        return self._cut(self._decode(token))

    def finish(self) -> str:
        """Return what was held back, at the end of the sequence."""
        rest = self._cut(self._piece) + ("" if self._is_cut else self._held)
        self._piece = self._held = ""
        return rest

    def _decode(self, token: int) -> str:
        if self._tokenizer is None:
            piece = str(token) if self._is_first else f" {token}"
            self._is_first = False
            return piece
        self._pending.append(token)
        piece = "".join(self._tokenizer.decode_stream(self._pending, after=self._context))
        if not piece or piece.endswith("\ufffd"):  # which may be an incomplete character
            self._piece = piece
            return ""
        self._context, self._pending, self._piece = self._pending, [], ""
        return piece

    def _cut(self, piece: str) -> str:
        """Return the text that no stop string can contain."""
        if not self._stops or self._is_cut:
            return "" if self._is_cut else piece
        text = self._held + piece
        places = [text.find(stop) for stop in self._stops if stop in text]
        if places:
            self._is_cut, self._held = True, ""
            return text[: min(places)]
        held = max(overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]


def token_text(tokenizer: TextTokenizer | None, token: int) -> str:
    """Return the text of one token, for log-probabilities.

    Args:
        tokenizer: Tokenizer of the model, if there is one.
        token: The token.
    """
    text = str(token) if tokenizer is None else tokenizer.decode([token])
    return text if text and "\ufffd" not in text else f"token_id:{token}"
