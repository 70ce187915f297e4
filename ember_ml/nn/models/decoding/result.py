"""Results of generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Generation:
    """Generated sequences without padding.

    With several samples of each prompt, the samples of a prompt follow each other.

    Example:
        >>> model = nn.models.LanguageModel("gru", 8, 16)
        >>> result = model.complete([[1, 2, 3], [4]], 5, log_probs=True)
        >>> [len(tokens) for tokens in result.tokens], result.finish_reason
        ([5, 5], ['length', 'length'])
        >>> [len(sequence) for sequence in result.sequences]
        [8, 6]
    """

    prompts: list[list[int]]
    """Prompt of each sequence."""
    tokens: list[list[int]]
    """New tokens of each sequence, with the stop token."""
    finish_reason: list[FinishReason]
    """Why each sequence ended: "stop" (a stop token or string, or a complete choice), or "length".
    """
    log_probs: list[list[float]] | None = None
    """Log-probability of each new token under the model, before penalties and temperature."""
    scores: list[float] | None = None
    """Beam search: sum of the log-probabilities divided by length ** length_penalty."""

    @property
    def sequences(self) -> list[list[int]]:
        """Prompts and new tokens."""
        return [[*a, *b] for a, b in zip(self.prompts, self.tokens, strict=True)]

    def __len__(self) -> int:
        return len(self.tokens)
