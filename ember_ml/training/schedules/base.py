"""The base class of learning rate schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeAlias, cast

from ember_ml._core.errors import ArgumentError
from ember_ml.configs import Config
from ember_ml.configs.fields import ComponentLike
from ember_ml.registry import build

ScheduleLike: TypeAlias = Callable[[int], float]
"""Number of steps done -> factor on the learning rates."""


class Schedule:
    """Base class of learning rate schedules.

    `schedule(step)` returns the factor on the learning rates after `step` steps: 0 for the first.
    Subclasses define `factor_at`.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedule = schedules.Linear(total_steps=4)
        >>> [schedule(step) for step in range(5)]
        [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    config: Config | None = None
    """The config it was built from."""

    def __call__(self, step: int) -> float:
        """Return the factor on the learning rates.

        Args:
            step: Number of steps done, at least 0.
        """
        if step < 0:
            raise ArgumentError(f"{type(self).__name__}: step must be at least 0, not {step}")
        return float(self.factor_at(step))

    def factor_at(self, step: int) -> float:
        """Return the factor after `step` steps."""
        raise NotImplementedError

    def observe(self, value: float) -> None:
        """Receive a validation loss after an epoch; most schedules ignore it."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as plain data; empty for most schedules."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """Restore a state that `state_dict` returned."""
        return self

    def __repr__(self) -> str:
        given = self.config.to_dict() if self.config is not None else {}
        inside = ", ".join(f"{name}={value!r}" for name, value in given.items() if name != "type")
        return f"{type(self).__name__}({inside})"


def get(schedule: ComponentLike) -> ScheduleLike:
    """Return the schedule described by a name, a config, {"type": ...} or a callable.

    Args:
        schedule: Description of the schedule; a callable is returned as it is.

    Example:
        >>> from ember_ml.training import schedules
        >>> schedules.get({"type": "warmup", "warmup_steps": 4})(1)
        0.25
    """
    return cast(ScheduleLike, build("schedules", schedule))


def line(start: float, end: float, share: float) -> float:
    """Return the linear interpolation between two values."""
    return start + (end - start) * share
