"""Limits of a server."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ember_ml._core.errors import ArgumentError


@dataclass(frozen=True)
class Limits:
    """Limits of an engine and of the requests that it accepts.

    Args:
        max_batch: Maximum number of sequences that are generated at once.
        queue: Maximum number of further sequences that wait.
        max_tokens: Maximum number of new tokens of a sequence.
        max_length: Maximum number of tokens of a prompt and its completion. Default: that of the
            model, or 4096 if the model has none.
        max_cached_tokens: Maximum number of positions in memory: sequences times the length of the
            longest one. Sequences that do not fit wait. Default: no limit.
        prefill_chunk: Number of tokens of a prompt that are processed between two steps of the
            running sequences.
        timeout: Seconds until a request fails, from its arrival.
        body_bytes: Maximum size of the body of a request.

    Example:
        >>> from ember_ml.serving import Limits
        >>> Limits(max_batch=8).queue
        64
    """

    max_batch: int = 32
    queue: int = 64
    max_tokens: int = 1024
    max_length: int | None = None
    max_cached_tokens: int | None = None
    prefill_chunk: int = 256
    timeout: float = 120.0
    body_bytes: int = 4 << 20

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_tokens", "prefill_chunk", "body_bytes"):
            _require_at_least(name, getattr(self, name), 1)
        _require_at_least("queue", self.queue, 0)
        for name in ("max_length", "max_cached_tokens"):
            if getattr(self, name) is not None:
                _require_at_least(name, getattr(self, name), 2)
        if not 0 < self.timeout < math.inf:
            raise ArgumentError(f"Limits: timeout must be above 0 and finite, not {self.timeout}")

    @property
    def places(self) -> int:
        """Maximum number of sequences that run or wait."""
        return self.max_batch + self.queue


def _require_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ArgumentError(f"Limits: {name}={value} must be at least {least}")
