"""What a schedule is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ember_ml._core.errors import ArgumentError
from ember_ml.registry import build


class Schedule:
    """What the learning rates are multiplied by, step by step.

    `schedule(step)` is the factor for the step after so many were made: the first has step 0.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedule = schedules.Linear(total_steps=4)
        >>> [schedule(step) for step in range(5)]
        [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    config: Any = None
    """What it was built by."""

    def __call__(self, step: int) -> float:
        """The factor."""
        if step < 0:
            raise ArgumentError(f"{type(self).__name__}: a step is at least 0, not {step}")
        return float(self.factor_at(step))

    def factor_at(self, step: int) -> float:
        """The factor; subclasses write this."""
        raise NotImplementedError

    def observe(self, value: float) -> None:
        """Take note of a measured value; only some schedules go by one."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, as plain data; most remember nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Go on from what `state_dict` gave."""
        return self

    def __repr__(self) -> str:
        given = self.config.to_dict() if self.config is not None else {}
        inside = ", ".join(f"{name}={value!r}" for name, value in given.items() if name != "type")
        return f"{type(self).__name__}({inside})"


def get(schedule: Any) -> Any:
    """The schedule that a name, a config or a schedule itself means.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedules.get({"type": "warmup", "warmup_steps": 4})(1)
        0.25
    """
    return build("schedules", schedule)


def line(start: float, end: float, share: float) -> float:
    """A point on the straight line between two values."""
    return start + (end - start) * share
