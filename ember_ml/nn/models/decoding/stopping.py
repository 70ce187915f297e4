"""Conditions that end a sequence."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml._core.errors import ArgumentError
from ember_ml.nn.models.decoding.choices import Choices
from ember_ml.nn.models.decoding.options import Options
from ember_ml.nn.models.decoding.tokenizers import TextTokenizer


class Stopping:
    """Stop tokens, stop strings and complete choices of a call.

    Args:
        options: Options of the call.
        vocab_size: Number of tokens in the vocabulary.
        tokenizer: Tokenizer of the model, for stop strings.
    """

    def __init__(self, options: Options, vocab_size: int, tokenizer: TextTokenizer | None) -> None:
        self.ids = frozenset(options.stop_ids)
        self.strings = options.stop_strings
        longest = max(map(len, self.strings), default=0)
        self._window = 32 + 4 * longest  # a character may have 4 tokens
        self.tokenizer = tokenizer
        self.choices: Choices | None = None
        if options.allowed is not None:
            self.choices = Choices(options.allowed, vocab_size, options.stop_ids)
        if self.strings and tokenizer is None:
            raise ArgumentError(
                "generate: stop needs a tokenizer; assign model.tokenizer, or pass eos"
            )

    @property
    def is_empty(self) -> bool:
        """Whether nothing but the number of tokens ends a sequence."""
        return not (self.ids or self.strings or self.choices is not None)

    def ends(self, tokens: Sequence[int]) -> bool:
        """Return whether the last token ends the sequence.

        Args:
            tokens: Tokens generated so far, with at least one.
        """
        if tokens[-1] in self.ids:
            return True
        if self.choices is not None and self.choices.is_complete(tokens):
            return True
        recent = tokens[-self._window :]  # the cost of a token does not grow with the text
        return self._has_string(recent) and (len(recent) == len(tokens) or self._has_string(tokens))

    def _has_string(self, tokens: Sequence[int]) -> bool:
        """Return whether the text of tokens has a stop string."""
        if not self.strings or self.tokenizer is None:
            return False
        text = self.tokenizer.decode(list(tokens))
        return any(string in text for string in self.strings)
