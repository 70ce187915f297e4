"""A trial: one choice of hyperparameters and its result."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ember_ml.training.tuning.errors import TuningError

State = Literal["running", "done", "pruned", "failed"]
Report = Callable[[int, float], bool]
"""Function of a step and a value that returns whether the trial is to stop."""


@dataclass(eq=False)
class Trial(Mapping[str, Any]):
    """One choice of hyperparameters, and what is known about its result.

    A trial is a mapping from the dotted keys of the space to the values.

    Args:
        id: Number of the trial in the history file, from 0.
        params: Values of the active hyperparameters, by dotted key.
        task: Name of the task; scores are comparable within a task.
        source: Name of the source of the data, which several tasks may share.
        meta: Meta-features of the task.
        seed: Seed for the training run.
        sampler: Name of the sampler that proposed the values.
        state: "running", "done", "pruned" or "failed".
        scores: Value of each objective, once the trial is done; the last report if it is pruned.
        reports: Pairs of a step and a value, in the order in which they were reported.
        reason: Why the trial failed.
        owner: Process that runs the trial.
        listener: Function that `report` calls.
    """

    id: int
    params: dict[str, Any]
    task: str = "default"
    source: str = "default"
    meta: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    sampler: str = ""
    state: State = "running"
    scores: dict[str, float] = field(default_factory=dict)
    reports: list[tuple[int, float]] = field(default_factory=list)
    reason: str = ""
    owner: dict[str, Any] = field(default_factory=dict, repr=False)
    listener: Report | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.stopped = False

    def __getitem__(self, key: str) -> Any:
        return self.params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)

    @property
    def is_over(self) -> bool:
        """Whether the trial is done, pruned or failed."""
        return self.state != "running"

    def report(self, step: int, value: float) -> bool:
        """Report a value during the trial; return True if the trial is to stop.

        Args:
            step: Number of training steps, or epochs, so far.
            value: Value of the metric.
        """
        if self.listener is not None and self.listener(step, value):
            self.stopped = True
        return self.stopped

    def to_dict(self) -> dict[str, Any]:
        """Return the trial as plain data, for another process."""
        names = ("id", "params", "task", "source", "meta", "seed", "sampler")
        return {name: copy.deepcopy(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Trial:
        """Return the trial that `to_dict` described.

        Args:
            data: Plain data.
        """
        return cls(**data)


def as_number(where: str, value: Any) -> float:
    """Return a score as a float, which may be NaN; raise an error if it is not a number.

    Args:
        where: What the value belongs to, for the error.
        value: The score: a number, or a tensor with one element.
    """
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TuningError(f"{where}: a score must be a number, not {value!r:.60}") from None


def check_value(where: str, value: Any) -> float:
    """Return a score as a float; raise an error if it is not a finite number.

    Args:
        where: What the value belongs to, for the error.
        value: The score: a number, or a tensor with one element.
    """
    number = as_number(where, value)
    if not math.isfinite(number):
        raise TuningError(
            f"{where}: a score must be finite, not {number}; use tuner.fail(trial, reason) for a "
            "trial that diverged"
        )
    return number
