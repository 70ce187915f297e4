"""Measurements of an engine."""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator, Mapping

from ember_ml.serving.errors import DeadlineExceeded, PipelineClosed
from ember_ml.serving.sequences import Sequence

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets of histograms, in seconds."""


class Histogram:
    """Durations in buckets."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Add a duration."""
        self.buckets[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of the text format of Prometheus."""
        yield f"# TYPE {name} histogram"
        count = 0
        for bound, number in zip((*BOUNDS, "+Inf"), self.buckets, strict=True):
            count += number
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self.total:.9g}"
        yield f"{name}_count {count}"


class Counts:
    """Numbers of sequences and tokens, and durations. One thread writes them."""

    def __init__(self) -> None:
        self.accepted = self.rejected = 0
        self.completed = self.failed = self.cancelled = self.expired = self.refused = 0
        self.waiting = self.prefilling = self.running = 0
        self.prompt_tokens = self.new_tokens = 0
        self.steps = self.rows = self.engine_errors = 0
        self.step_seconds = Histogram()
        self.first_token_seconds = Histogram()

    def step(self, rows: int, seconds: float) -> None:
        """Record a step of the running sequences."""
        self.steps += 1
        self.rows += rows
        self.step_seconds.add(seconds)

    def token(self, sequence: Sequence) -> None:
        """Record a new token."""
        self.new_tokens += 1
        if sequence.first_token_at is None:
            sequence.first_token_at = time.monotonic()
            self.first_token_seconds.add(sequence.first_token_at - sequence.arrival)

    def fail(self, error: Exception) -> None:
        """Record a sequence that ended with an error."""
        if isinstance(error, DeadlineExceeded):
            self.expired += 1
        elif isinstance(error, PipelineClosed):
            self.refused += 1
        else:
            self.failed += 1

    def metrics(self, prefix: str = "ember_serve") -> str:
        """Return the measurements in the text format of Prometheus.

        Args:
            prefix: Start of the names.
        """
        outcomes = ("completed", "failed", "cancelled", "expired", "refused", "rejected")
        lines = [f"# TYPE {prefix}_sequences_total counter"]
        for name in ("accepted", *outcomes):
            lines.append(f'{prefix}_sequences_total{{outcome="{name}"}} {getattr(self, name)}')
        for name in ("waiting", "prefilling", "running"):
            lines += [f"# TYPE {prefix}_{name} gauge", f"{prefix}_{name} {getattr(self, name)}"]
        counters: Mapping[str, int] = {
            "prompt_tokens": self.prompt_tokens,
            "new_tokens": self.new_tokens,
            "steps": self.steps,
            "step_rows": self.rows,
            "engine_errors": self.engine_errors,
        }
        for name, value in counters.items():
            lines += [f"# TYPE {prefix}_{name}_total counter", f"{prefix}_{name}_total {value}"]
        lines += self.step_seconds.lines(f"{prefix}_step_seconds")
        lines += self.first_token_seconds.lines(f"{prefix}_time_to_first_token_seconds")
        return "\n".join(lines) + "\n"
