"""Measurements of an asynchronous pipeline."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple


class Timing:
    """Number, sum and maximum of durations in seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.max = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Add `count` durations of the same length."""
        self.count += count
        self.total += seconds * count
        self.max = max(self.max, seconds)

    def summary(self) -> Durations:
        """Return the durations so far."""
        return Durations(self.count, self.total, self.max)


@dataclass(frozen=True)
class Durations:
    """Durations in seconds."""

    count: int
    total: float
    max: float

    @property
    def mean(self) -> float:
        """Mean duration; 0 if there is none."""
        return self.total / self.count if self.count else 0.0


class StageStats(NamedTuple):
    """Measurements of one stage."""

    name: str
    depth: int
    """Number of items in the queue."""
    running: int
    """Number of running calls, including abandoned ones."""
    abandoned: int
    """Number of running calls whose result is discarded; each takes a slot until it returns."""
    failed: int
    """Number of items that failed here, whatever `on_error` says."""
    wait: Durations
    """Times of items in the queue."""
    run: Durations
    """Durations of the calls."""
    batch_sizes: dict[int, int]
    """Number of items in a call -> number of calls."""


class Stats(NamedTuple):
    """Counts and measurements of a pipeline since it was started.

    `accepted == completed + failed + cancelled + expired + skipped + in_flight` at all times, and
    `in_flight` is 0 after `aclose`.
    """

    accepted: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    expired: int = 0
    skipped: int = 0
    in_flight: int = 0
    rejected: int = 0
    """Number of items that were not accepted: `Overloaded`, closed, or no place in time."""
    abandoned: int = 0
    """Number of calls in all stages whose result is discarded but which still run."""
    healthy: bool = True
    """Whether the pipeline works: no abandoned calls, no internal error."""
    latency: Durations = Durations(0, 0.0, 0.0)
    """Times from acceptance to completion."""
    stages: tuple[StageStats, ...] = ()

    def metrics(self, prefix: str = "ember_pipeline") -> str:
        """Return the counts in the text format of Prometheus, for `/metrics`.

        Args:
            prefix: Start of the names.
        """
        lines = [f"# TYPE {prefix}_items_total counter"]
        for name in ("accepted", "completed", "failed", "cancelled", "expired", "skipped"):
            lines.append(f'{prefix}_items_total{{outcome="{name}"}} {getattr(self, name)}')
        lines.append(f'{prefix}_items_total{{outcome="rejected"}} {self.rejected}')
        lines += _family(f"{prefix}_in_flight", "gauge", {"": self.in_flight})
        lines += _family(f"{prefix}_healthy", "gauge", {"": int(self.healthy)})
        for field, kind in _STAGE_FIELDS.items():
            values = {_label(stage.name): getattr(stage, field) for stage in self.stages}
            lines += _family(f"{prefix}_stage_{field}{_SUFFIX[kind]}", kind, values)
        for field in ("wait", "run"):
            name = f"{prefix}_stage_{field}_seconds"
            lines.append(f"# TYPE {name} summary")
            for stage in self.stages:
                durations: Durations = getattr(stage, field)
                lines.append(f"{name}_sum{_label(stage.name)} {durations.total:.9g}")
                lines.append(f"{name}_count{_label(stage.name)} {durations.count}")
        name = f"{prefix}_stage_batches_total"
        lines.append(f"# TYPE {name} counter")
        for stage in self.stages:
            for size, number in sorted(stage.batch_sizes.items()):
                lines.append(f'{name}{_label(stage.name)[:-1]},size="{size}"}} {number}')
        return "\n".join(lines) + "\n"


_STAGE_FIELDS = {"depth": "gauge", "running": "gauge", "abandoned": "gauge", "failed": "counter"}
_SUFFIX = {"gauge": "", "counter": "_total"}


def _label(stage: str) -> str:
    escaped = stage.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'{{stage="{escaped}"}}'


def _family(name: str, kind: str, values: dict[str, int]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{label} {value}" for label, value in values.items())]


class StageCounts:
    """Measurements of one stage, while they are taken."""

    def __init__(self) -> None:
        self.failed = 0
        self.wait = Timing()
        self.run = Timing()
        self.batch_sizes: Counter[int] = Counter()
